//! More waiters in one session than its client could watch for.

use std::time::Duration;

use tokio::task::JoinSet;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{eventually, server, session};

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_waiters_of_one_session_survive_a_reconnect() {
    const LOCKS: usize = 250;
    const WAITERS: usize = 20;
    let mut server = server().await;
    let session = session(&server, Duration::from_secs(30)).await;
    let id = session.id();
    let path = |number: usize| format!("/locks/crowd/{number}");
    let lock = |number| ExclusiveLock::new(&session, path(number)).expect("a good path");
    let mut holds = Vec::new();
    for number in 0..LOCKS {
        holds.push(lock(number).acquire().await.expect("nobody is before it"));
    }
    let mut tasks = JoinSet::new();
    for _ in 0..WAITERS {
        for number in 0..LOCKS {
            // Made anew each, so that all of them wait on the server.
            let lock = lock(number);
            tasks.spawn(async move {
                let hold = lock.acquire().await.expect("the lock is acquired");
                hold.release().await.expect("the lock is released");
            });
        }
    }
    eventually("all have queued", || async {
        server
            .monitor()
            .await
            .expect("the server answers")
            .ephemerals as usize
            == LOCKS * (WAITERS + 1)
    })
    .await;
    // As many watches as there is room for: many hundreds, and no more coming.
    let watches = || async { server.monitor().await.expect("the server answers").watches };
    let last = std::sync::atomic::AtomicU64::new(0);
    eventually("they watch", || async {
        let now = watches().await;
        let before = last.swap(now, std::sync::atomic::Ordering::Relaxed);
        now > 500 && now == before
    })
    .await;
    server.kill().await.expect("it can be killed");
    server.restart().await.expect("it starts again");
    eventually("the connection is back", || async {
        server
            .monitor()
            .await
            .is_ok_and(|monitor| monitor.watches > 0)
    })
    .await;
    for hold in holds {
        hold.release().await.expect("the session has survived");
    }
    while tasks
        .join_next()
        .await
        .transpose()
        .expect("no panic")
        .is_some()
    {}
    assert_eq!(session.id(), id, "one session from beginning to end");
    eventually("nothing is left", || async {
        let monitor = server.monitor().await.expect("the server answers");
        monitor.ephemerals == 0 && monitor.watches == 0
    })
    .await;
}
