//! Servers that come back from a restart, also with another configuration.

use zookeeper_recipes_core::HoldState;
use zookeeper_recipes_suite::{
    KINDS, LATE, LONG, SHORT, TICK, assert_nothing_left, eventually, in_time, server, session,
};

use crate::support::{acquire, acquired, hold_all, queue_length, works_with_each_kind};

#[tokio::test(flavor = "multi_thread")]
async fn holders_and_waiters_come_through_a_restart_of_the_server() {
    let mut server = server().await;
    let (ours, theirs) = (session(&server, LONG).await, session(&server, LONG).await);
    let mut held = Vec::new();
    for &kind in KINDS {
        let hold = kind.on(&ours, "restarted").acquire().await;
        let next = acquire(kind.rival_on(&theirs, "restarted"));
        queue_length(kind, &*kind.on(&ours, "restarted"), 2).await;
        held.push((kind, hold.expect("it is free"), next));
    }
    server.kill().await.expect("it can be killed");
    server.restart().await.expect("it starts again");
    for (kind, hold, next) in held {
        eventually("it is held", || async {
            assert!(hold.is_held(), "{kind:?}: {:?}", hold.state());
            hold.state() == HoldState::Held
        })
        .await;
        assert!(!next.is_finished(), "{kind:?}: held twice");
        let token = hold.fencing_token();
        hold.release().await.expect("it is released");
        let next = acquired(kind.name, next).await;
        assert!(token < next.fencing_token(), "{kind:?}");
        next.release().await.expect("it is released");
    }
    for session in [ours, theirs] {
        session.close().await;
    }
    assert_nothing_left(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_go_on_when_servers_no_longer_know_digest() {
    let mut server = server().await;
    let session = session(&server, SHORT).await;
    let holds = hold_all(&session, "held").await;
    server
        .set_configuration("DigestAuthenticationProvider.enabled", "false")
        .expect("it is written");
    server.restart().await.expect("it serves again");
    for hold in &holds {
        // The session's identity cannot be shown any more.
        in_time("the loss", hold.lost()).await;
    }
    works_with_each_kind(&session, "held", SHORT + TICK + LATE).await;
}
