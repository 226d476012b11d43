//! The reason of a loss, which is the same on Apache's server and on the embedded one.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinHandle;
use zookeeper_recipes_core::{Error, Hold, HoldState, LossReason, Session, SessionEnd};
use zookeeper_recipes_suite::{
    LOCK, LONG, SHORT, TestServer, administrator, children, eventually, in_time, on_both_servers,
    session,
};
use zookeeper_recipes_testkit::conformance::CheckedServer;

on_both_servers!(apache at night:
    expiry_is_no_deletion_by_another_client,
    deletion_by_another_client_is_one,
    lapse_is_one_though_the_znode_is_deleted_since,
    waiter_whose_session_expires_blames_nobody,
    waiter_whose_znode_is_deleted_blames_another_client,
);

const PATH: &str = "/lost/lock";
const EXPIRED: LossReason = LossReason::Session(SessionEnd::Expired);

/// A hold whose znode its session watches, in a session with this timeout.
async fn watched(server: &TestServer, timeout: Duration) -> (Session, Hold) {
    let session = session(server, timeout).await;
    let acquiring = LOCK.at(&session, PATH, 1);
    let hold = in_time("it is acquired", acquiring.acquire()).await;
    let hold = hold.expect("nobody is before it");
    eventually("the znode is watched", async || {
        let watches = server.watches().await.expect("the server answers");
        watches.contains_key(hold.node_path())
    })
    .await;
    (session, hold)
}

/// Each report of the loss names this reason.
async fn is_lost_for(hold: Hold, reason: LossReason) {
    let lost = in_time("it is lost", hold.lost()).await;
    assert_eq!(lost, reason, "lost()");
    assert_eq!(hold.state(), HoldState::Lost(reason), "state()");
    let released = hold.release().await;
    let is_named = matches!(&released, Err(Error::Lost { reason: named, .. }) if *named == reason);
    assert!(is_named, "release(): {released:?}");
}

async fn expiry_is_no_deletion_by_another_client(server: TestServer) {
    let (_session, hold) = watched(&server, LONG).await;
    server.expire(hold.session_id()).await;
    is_lost_for(hold, EXPIRED).await;
}

async fn deletion_by_another_client_is_one(server: TestServer) {
    let (_session, hold) = watched(&server, LONG).await;
    let client = administrator(&server).await;
    let deleted = client.delete(hold.node_path(), None).await;
    deleted.expect("it exists");
    is_lost_for(hold, LossReason::Deleted).await;
}

/// A waiter behind the holder of another session, once the server knows its znode and its watch.
///
/// Returns the waiter, its session, and the path of its znode.
async fn waiter(
    server: &TestServer,
    hold: &Hold,
) -> (JoinHandle<Result<Hold, Error>>, Session, String) {
    let session = session(server, LONG).await;
    let acquiring = LOCK.at(&session, PATH, 1);
    let waiting = tokio::spawn(async move { acquiring.acquire().await });
    let client = administrator(server).await;
    let own = hold.node_path();
    let mut found = None;
    eventually("the waiter watches both znodes", async || {
        let names = children(&client, PATH).await;
        let mut paths = names.iter().map(|name| format!("{PATH}/{name}"));
        found = paths.find(|path| path != own);
        let watches = server.watches().await.expect("the server answers");
        let is_watched = |path: &str| {
            let by =
                |watching: &BTreeSet<i64>| session.id().is_some_and(|it| watching.contains(&it.0));
            watches.get(path).is_some_and(by)
        };
        is_watched(own) && found.as_deref().is_some_and(is_watched)
    })
    .await;
    (waiting, session, found.expect("it was just found"))
}

async fn failure_of(waiting: JoinHandle<Result<Hold, Error>>) -> Error {
    let ended = in_time("the waiter ends", waiting).await;
    ended.expect("no panic").expect_err("another client holds")
}

/// The server deletes the waiter's znode with its session, and the waiter watches that znode.
async fn waiter_whose_session_expires_blames_nobody(server: TestServer) {
    let (_session, hold) = watched(&server, LONG).await;
    let (waiting, other, _) = waiter(&server, &hold).await;
    let expired = other.id().expect("it is open");
    server.expire(expired).await;
    let error = failure_of(waiting).await;
    let Error::SessionOver {
        session, reason, ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!((*session, *reason), (expired, SessionEnd::Expired));
    assert!(!error.to_string().contains("another client"), "{error}");
    assert!(hold.is_held());
}

async fn waiter_whose_znode_is_deleted_blames_another_client(server: TestServer) {
    let (_session, hold) = watched(&server, LONG).await;
    let (waiting, other, path) = waiter(&server, &hold).await;
    let client = administrator(&server).await;
    client.delete(&path, None).await.expect("it exists");
    let error = failure_of(waiting).await;
    let is_named = matches!(&error, Error::ContenderDeleted { path: named, .. } if *named == path);
    assert!(is_named, "{error:?}");
    assert!(other.is_connected() && hold.is_held());
}

async fn lapse_is_one_though_the_znode_is_deleted_since(server: TestServer) {
    let (session, hold) = watched(&server, SHORT).await;
    server.pause().expect("it runs");
    let lapsed = LossReason::LeaseElapsed;
    let lost = in_time("the lease lapses", hold.lost()).await;
    assert_eq!(lost, lapsed, "lost()");
    server.resume().expect("it is paused");
    // The session deletes the znode, or expires, or the other client is faster.
    let client = administrator(&server).await;
    let _ = client.delete(hold.node_path(), None).await;
    eventually("the session is connected again", async || {
        session.is_connected()
    })
    .await;
    is_lost_for(hold, lapsed).await;
}
