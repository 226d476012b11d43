//! Options and a chroot.

use std::time::Duration;

use zookeeper_recipes_lock::common;
use zookeeper_recipes_lock::{
    ConnectOptions, Error, ExclusiveLock, LockOptions, Session, WaitStrategy,
};
use zookeeper_recipes_suite::{administrator, children, create, exists, server, session};

use super::support::SESSION_TIMEOUT;

#[tokio::test(flavor = "multi_thread")]
async fn options_that_make_no_sense_are_refused() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    for options in [
        LockOptions::new().acl([]),
        LockOptions::new().strategy(WaitStrategy::Poll(Duration::ZERO)),
    ] {
        assert!(ExclusiveLock::with_options(&session, "/locks/a", options).is_err());
    }
    let tick = ConnectOptions::new()
        .session_timeout(Duration::from_secs(4))
        .tick(Duration::from_secs(3));
    let error = Session::connect_with(&server.connect_string(), tick)
        .await
        .err();
    assert!(matches!(error, Some(Error::InvalidInput(_))), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chroot_is_kept_to() {
    let server = server().await;
    let client = administrator(&server).await;
    create(&client, "/app").await;
    let session = Session::connect(&format!("{}/app", server.connect_string())).await;
    let session = session.expect("a session opens");
    let lock = ExclusiveLock::new(&session, "/locks/a").expect("a good path");
    let hold = lock.acquire().await.expect("nobody is before it");
    assert!(
        hold.node_path().starts_with("/locks/a/"),
        "{}",
        hold.node_path()
    );
    assert_eq!(children(&client, "/app/locks/a").await.len(), 1);
    hold.transaction()
        .create("/made", b"", common::CreateMode::Persistent)
        .commit()
        .await
        .expect("held");
    assert!(exists(&client, "/app/made").await);
}
