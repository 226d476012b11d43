//! A holder that dies.

use std::time::Instant;

use zookeeper_recipes_lock::{ExclusiveLock, Session};
use zookeeper_recipes_suite::{TICK, queue_length, server, session};

use super::support::{SESSION_TIMEOUT, assert_nothing_left};

/// Set for the child process that is to hold the lock until it is killed.
const HOLDER: &str = "ZOOKEEPER_RECIPES_TEST_HOLDER";

fn lock(session: &Session) -> ExclusiveLock {
    ExclusiveLock::new(session, "/locks/lost").expect("a good path")
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_gets_the_lock_when_the_holders_process_is_killed() {
    if let Ok(connect_string) = std::env::var(HOLDER) {
        let session = session(&connect_string, SESSION_TIMEOUT).await;
        let _hold = lock(&session).acquire().await.expect("nobody is before it");
        return std::future::pending().await;
    }
    let server = server().await;
    let mut holder = tokio::process::Command::new(std::env::current_exe().expect("a test binary"))
        .args([
            "--exact",
            "real_server::losing::waiter_gets_the_lock_when_the_holders_process_is_killed",
        ])
        .env(HOLDER, server.connect_string())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the holder starts");
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = lock(&session);
    queue_length(&lock, 1).await;
    let waiter = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await }
    });
    queue_length(&lock, 2).await;
    holder.kill().await.expect("the holder can be killed");
    let killed = Instant::now();
    let hold = waiter
        .await
        .expect("no panic")
        .expect("the lock is acquired");
    let gap = killed.elapsed();
    assert!(
        gap <= SESSION_TIMEOUT + 2 * TICK,
        "the lock was free for {gap:?}"
    );
    hold.release().await.expect("the lock is released");
    assert_nothing_left(&server, "/locks/lost").await;
}
