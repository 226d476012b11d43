//! An acquisition that a server keeps waiting.

use std::time::Duration;

use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{PATIENCE, server, session};

use crate::support::{SESSION_TIMEOUT, assert_nothing_left};

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_bounds_the_wait_for_a_silent_server() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = ExclusiveLock::new(&session, "/locks/silent").expect("a good path");
    server.pause().expect("it can be paused");
    let started = std::time::Instant::now();
    let result = lock.acquire_timeout(Duration::from_millis(500)).await;
    let waited = started.elapsed();
    assert!(matches!(
        result,
        Err(zookeeper_recipes_lock::Error::DeadlineElapsed { .. })
    ));
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    server.resume().expect("it goes on");
    let hold = lock
        .acquire_timeout(PATIENCE)
        .await
        .expect("it works again");
    hold.release().await.expect("the lock is released");
    assert_nothing_left(&server, "/locks/silent").await;
}
