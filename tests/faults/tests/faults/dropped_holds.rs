//! Holds that are dropped when nothing can be awaited any more.

use futures::executor::block_on;

use crate::support::*;

on_both_servers!(apache at night:
    hold_is_dropped_released_and_acquired_outside_any_runtime,
);

async fn hold_is_dropped_released_and_acquired_outside_any_runtime(server: TestServer) {
    let administrator = administrator(&server).await;
    let session = session(&server, LONG).await;
    let [dropped, released] = ["dropped", "released"].map(|it| hold_all(&session, it));
    let (dropped, released) = (dropped.await, released.await);
    let tried = KINDS.iter().map(|kind| kind.on(&session, "tried"));
    let tried = Vec::from_iter(tried);
    let thread = std::thread::spawn(move || {
        drop(dropped);
        let release = |hold: Hold| block_on(hold.release());
        released.into_iter().try_for_each(release)?;
        tried.iter().try_for_each(|recipe| {
            let hold = block_on(recipe.try_acquire())?;
            release(hold.expect("it is free"))
        })
    });
    // The tasks of the session run meanwhile, in the threads of this runtime.
    let done = tokio::task::spawn_blocking(move || thread.join()).await;
    let done = done.expect("no panic").expect("no panic");
    done.expect("each is released");
    for &kind in KINDS {
        for scenario in ["dropped", "released", "tried"] {
            assert_nothing_left(&server, &administrator, kind, scenario).await;
        }
    }
}
