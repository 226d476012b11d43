//! Why no server can be reached, in words.

use super::*;

fn text(obstacles: &[Break], is_encrypted: bool) -> String {
    let hosts = (1..).zip(obstacles).map(|(port, obstacle)| {
        let name = "zk".to_owned();
        (Host { name, port }, Some(obstacle.clone()))
    });
    let hosts = hosts.collect();
    Unreachable {
        hosts,
        is_encrypted,
    }
    .to_string()
}

fn too_long(length: usize) -> Break {
    let limit = 1 << 20;
    Break::Frame(FrameError::TooLong { length, limit })
}

#[test]
fn hosts_that_cannot_be_reached_are_separated() {
    let one = text(&[Break::ClosedUnheard], false);
    assert!(one.starts_with("zk:1: something listens"), "{one}");
    let two = text(&[Break::ClosedUnheard, too_long(1 << 30)], false);
    let parts: Vec<&str> = two.split("; ").collect();
    assert_eq!(parts.len(), 2, "{two}");
    assert_eq!(parts[0], one);
    assert!(parts[1].starts_with("zk:2: something listens"), "{two}");
}

/// A client that speaks TLS knows that the port does.
#[test]
fn port_that_may_expect_tls_is_called_so_unless_the_client_speaks_it() {
    for (obstacle, may_expect_tls) in [
        (Break::ClosedUnheard, true),
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
        let text = text(&[Break::ClosedUnheard], is_encrypted);
        let place = |cause: &str| text.find(cause).expect(cause);
        assert!(place("maxClientCnxns") < place("quorum"), "{text}");
        if !is_encrypted {
            assert!(place("quorum") < place("TLS"), "{text}");
        }
    }
}
