//! What core sees of the states of a connection.

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
