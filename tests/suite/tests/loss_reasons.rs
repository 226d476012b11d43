//! The reason of a loss, which is the same on Apache's server and on the embedded one.

use std::time::Duration;

use zookeeper_recipes_core::{Error, Hold, HoldState, LossReason, Session, SessionEnd};
use zookeeper_recipes_suite::{
    LOCK, LONG, SHORT, TestServer, administrator, eventually, in_time, on_both_servers, session,
};
use zookeeper_recipes_testkit::conformance::CheckedServer;

on_both_servers!(
    expiry_is_no_deletion_by_another_client,
    deletion_by_another_client_is_one,
    lapse_is_one_though_the_znode_is_deleted_since,
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
