//! Holds that are dropped when nothing can be awaited any more.

use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::Duration;

use zookeeper_recipes_core::Hold;
use zookeeper_recipes_suite::{
    Address, KINDS, LONG, SHORT, TestServer, administrator, in_time, on_both_servers, server,
    session,
};

use crate::support::{acquire, assert_nothing_left, hold_all, queue_length};

on_both_servers!(apache at night:
    hold_is_dropped_released_and_acquired_outside_any_runtime,
    hold_dropped_by_a_panicking_task_is_released_at_once,
);

/// Set for the child process in which runtimes go down.
const CHILD: &str = "ZOOKEEPER_RECIPES_DROPPED_HOLDS";
const TEST: &str = "dropped_holds::runtime_that_shuts_down_neither_panics_nor_keeps_a_znode";

/// Polls a future on this thread alone.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Woken(Thread);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Arc::new(Woken(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

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

async fn hold_dropped_by_a_panicking_task_is_released_at_once(server: TestServer) {
    let administrator = administrator(&server).await;
    let session = session(&server, LONG).await;
    let holds = hold_all(&session, "panic").await;
    let waiting = session.clone();
    let task = tokio::spawn(async move {
        let _holds = holds;
        // The task waits behind its own holds, so that a waiter was dropped before the panic.
        let waiters = KINDS.iter().map(|kind| kind.rival_on(&waiting, "panic"));
        for waiter in waiters {
            let early = waiter.acquire_timeout(Duration::from_millis(50)).await;
            assert!(early.is_err());
        }
        panic!("on purpose");
    });
    let error = task.await.expect_err("it panics");
    assert!(error.is_panic());
    for &kind in KINDS {
        assert_nothing_left(&server, &administrator, kind, "panic").await;
    }
}

/// What the child does: everything that may go wrong when runtimes go down.
fn shut_down(connect_string: &str) {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime")
    };
    // Dropped with the tasks of a runtime, the session's own among them.
    let first = runtime();
    let holds = first.block_on(async {
        let session = session(connect_string, SHORT).await;
        let holds = hold_all(&session, "task").await;
        for &kind in KINDS {
            acquire(kind.rival_on(&session, "task"));
            queue_length(kind, &*kind.on(&session, "task"), 2).await;
        }
        tokio::spawn(async move {
            let _holds = holds;
            std::future::pending::<()>().await
        });
        hold_all(&session, "later").await
    });
    drop(first);
    // Its runtime has gone, and there is none here.
    assert!(holds.iter().all(|hold| format!("{hold:?}").len() > 1));
    drop(holds);

    // Shut down without waiting, and used from another runtime.
    let (second, third) = (runtime(), runtime());
    let (holds, waiters) = second.block_on(async {
        let session = session(connect_string, SHORT).await;
        let holds = hold_all(&session, "elsewhere").await;
        let mut waiters = Vec::new();
        for &kind in KINDS {
            let waiter = kind.rival_on(&session, "elsewhere");
            waiters.push(third.spawn(async move { waiter.acquire().await }));
            queue_length(kind, &*kind.on(&session, "elsewhere"), 2).await;
        }
        (holds, waiters)
    });
    second.shutdown_background();
    third.block_on(async {
        for waiter in waiters {
            let outcome = in_time("the waiter learns of it", waiter)
                .await
                .expect("no panic");
            assert!(outcome.is_err(), "{outcome:?}");
        }
        for hold in holds {
            in_time("the hold is lost", hold.lost()).await;
            let released = in_time("the release", hold.release()).await;
            assert!(released.is_err(), "{released:?}");
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn runtime_that_shuts_down_neither_panics_nor_keeps_a_znode() {
    if let Ok(connect_string) = std::env::var(CHILD) {
        return tokio::task::spawn_blocking(move || shut_down(&connect_string))
            .await
            .expect("no panic");
    }
    let server = server().await;
    let administrator = administrator(&server).await;
    let child = tokio::process::Command::new(std::env::current_exe().expect("a test binary"))
        .args(["--exact", TEST, "--nocapture"])
        .env(CHILD, server.address())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the child starts");
    let output = in_time("the child ends", child.wait_with_output())
        .await
        .expect("it can be awaited");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(!said.contains("panicked at"), "{said}");
    for &kind in KINDS {
        for scenario in ["task", "later", "elsewhere"] {
            assert_nothing_left(&server, &administrator, kind, scenario).await;
        }
    }
}
