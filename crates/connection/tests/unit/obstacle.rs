//! Why no server can be reached, in words.

use std::time::Duration;

use super::*;

/// The text of these obstacles, each at an address of its own.
fn text(obstacles: &[DisconnectReason], is_encrypted: bool) -> String {
    let at = |last: u8, cause: &DisconnectReason| {
        let name = format!("10.0.0.{last}");
        obstacle(&name, Some(last), cause.clone())
    };
    let obstacles = (1..).zip(obstacles).map(|(last, cause)| at(last, cause));
    Obstacle::in_words(&obstacles.collect::<Vec<_>>(), is_encrypted)
}

/// An obstacle at the address that ends so, or at the look-up of the name.
fn obstacle(name: &str, last: Option<u8>, cause: DisconnectReason) -> Obstacle {
    let (name, port) = (name.to_owned(), 2181);
    let address = last.map(|last| ([10, 0, 0, last], port).into());
    Obstacle {
        host: Host { name, port },
        address,
        cause,
    }
}

fn too_long(length: usize) -> DisconnectReason {
    let limit = 1 << 20;
    DisconnectReason::Frame(FrameError::TooLong { length, limit })
}

#[test]
fn hosts_that_cannot_be_reached_are_separated() {
    let one = text(&[DisconnectReason::ClosedUnheard], false);
    assert!(one.starts_with("10.0.0.1:2181: something listens"), "{one}");
    let two = text(&[DisconnectReason::ClosedUnheard, too_long(1 << 30)], false);
    let parts: Vec<&str> = two.split("; ").collect();
    assert_eq!(parts.len(), 2, "{two}");
    assert_eq!(parts[0], one);
    assert!(
        parts[1].starts_with("10.0.0.2:2181: something listens"),
        "{two}"
    );
}

/// A client that speaks TLS knows that the port does.
#[test]
fn port_that_may_expect_tls_is_called_so_unless_the_client_speaks_it() {
    for (obstacle, may_expect_tls) in [
        (DisconnectReason::ClosedUnheard, true),
        (too_long(0x1503_0102), true),
        (too_long(0x1504_0000), false),
        (too_long(0x1502_ffff), false),
    ] {
        let says_so =
            |is_encrypted| text(std::slice::from_ref(&obstacle), is_encrypted).contains("TLS");
        assert_eq!(says_so(false), may_expect_tls, "{obstacle}");
        assert!(!says_so(true), "{obstacle}");
    }
}

/// A process that opens many sessions meets this limit first, at members that are well.
#[test]
fn limit_of_connections_is_the_first_cause_of_a_server_that_says_nothing() {
    for is_encrypted in [false, true] {
        let text = text(&[DisconnectReason::ClosedUnheard], is_encrypted);
        let place = |cause: &str| text.find(cause).expect(cause);
        assert!(place("maxClientCnxns") < place("quorum"), "{text}");
        if !is_encrypted {
            assert!(place("quorum") < place("TLS"), "{text}");
        }
    }
}

#[test]
fn addresses_of_a_name_with_the_same_obstacle_are_listed_together() {
    let refused = || DisconnectReason::NotConnected(Duration::from_secs(2));
    let mut obstacles: Vec<Obstacle> = (1..=6)
        .map(|last| obstacle("zk", Some(last), refused()))
        .collect();
    obstacles.push(obstacle("zk", Some(7), DisconnectReason::ReadOnly));
    let lasts = DisconnectReason::NotLookedUp(Duration::from_secs(9));
    obstacles.push(obstacle("other", None, lasts));
    assert_eq!(
        Obstacle::in_words(&obstacles, false)
            .split("; ")
            .collect::<Vec<_>>(),
        [
            "zk:2181 (10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4 and 2 more): no connection within 2s",
            "zk:2181 (10.0.0.7): something listens, but it opened no session: the server only reads",
            "other: the name was not looked up within 9s: do the name servers answer?",
        ]
    );
}
