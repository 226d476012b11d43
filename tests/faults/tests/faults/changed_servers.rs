//! Servers that come back from a restart, also with another configuration.

use zookeeper_recipes_suite::{QUIET, assert_nothing_left};

use crate::support::*;

/// The longest session timeout that a server grants after its restart.
const LOWERED: Duration = Duration::from_secs(6);

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
async fn sessions_continue_when_servers_no_longer_know_digest() {
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

/// The restart shortens the timeout of the holder's session, and not that of the waiter's.
#[tokio::test(flavor = "multi_thread")]
async fn holders_lose_in_time_when_a_restarted_server_grants_a_shorter_timeout() {
    let mut server = server().await;
    let (victim, rival) = (
        session(&server, QUIET).await,
        session(&server, LOWERED).await,
    );
    let successions = held_and_awaited(&victim, &rival, "lowered").await;
    server
        .set_configuration("maxSessionTimeout", LOWERED.as_millis().to_string())
        .expect("it is written");
    server.restart().await.expect("it serves again");
    for (kind, succession) in successions {
        let succeeded = succession.in_order().await;
        let shortened = HoldState::Lost(LossReason::Session(SessionEnd::TimeoutShortened));
        assert_eq!(succeeded.lost.state(), shortened, "{kind:?}");
        succeeded.next.release().await.expect("it is released");
    }
    works_with_each_kind(&victim, "lowered", LATE).await;
}
