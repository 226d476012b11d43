//! The end of a leader's work at the shutdown, on a simulated ensemble.

use crate::*;

/// Much longer than a session lives.
const LONG: Duration = Duration::from_secs(60);

/// A shutdown that waits for the work lets it finish what it has begun, and hold meanwhile.
#[tokio::test(start_paused = true)]
async fn work_ends_by_itself_if_the_shutdown_waits_for_it() {
    const REQUEST: Duration = Duration::from_secs(5);
    let simulation = Simulation::default();
    let leading = election_in(&simulation, "one").await;
    let waiting = election_in(&simulation, "two").await;
    let (draining, _) = watch::channel(false);
    let shutdown = async {
        // In the middle of the second request.
        sleep(REQUEST + REQUEST / 2).await;
        draining.send_replace(true);
        draining.closed().await;
    };
    let held = RefCell::new(Vec::new());
    let serve = async |term: Term| {
        let drain = draining.subscribe();
        while !*drain.borrow() {
            sleep(REQUEST).await;
            held.borrow_mut().push(term.is_held());
        }
        Ok::<_, Infallible>(())
    };
    let ran = timeout(LONG, leading.run(shutdown, serve)).await;
    ran.expect("in time").expect("nothing fails");
    assert_eq!(
        held.into_inner(),
        [true, true],
        "both requests are finished under the hold"
    );
    let next = timeout(REQUEST, waiting.acquire()).await;
    let next = next.expect("the first has resigned").expect("it leads");
    next.release().await.expect("it is held");
}
