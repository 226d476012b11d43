//! What core sees of the states of a connection, and of the results of a transaction.

use super::*;

/// Nobody looked between the two connections.
#[tokio::test(start_paused = true)]
async fn two_connections_have_a_break_between_them() {
    let timeout = Duration::from_secs(10);
    let state = |connection| State::Connected {
        session_id: 1,
        timeout,
        connection,
    };
    let (sender, mut states) = watch::channel(state(1));
    let mut seen = Seen::Nothing;
    let mut yielded = Vec::new();
    for connection in [1, 2, 2] {
        sender.send_replace(state(connection));
        let next = next_state(&mut states, timeout, seen);
        let next = tokio::time::timeout(timeout, next).await.expect("a state");
        let (next, now) = next.expect("it is not over");
        yielded.push(next);
        seen = now;
    }
    let expected = [
        ConnectionState::Connected,
        ConnectionState::Disconnected,
        ConnectionState::Connected,
    ];
    assert_eq!(yielded, expected);
}

/// So servers answer the create of a container among other operations (ZOOKEEPER-4026).
#[test]
fn znode_whose_create_is_answered_with_its_path_alone_has_no_known_czxid() {
    let path = "/app/locks".to_owned();
    let scope = Scope::new("/app", true);
    let created = outcome(&scope, MultiResult::Create { path }).expect("a result");
    let Outcome::Created(created) = created else {
        panic!("{created:?}");
    };
    assert_eq!((&*created.path, created.stat.czxid), ("/locks", -1));
}
