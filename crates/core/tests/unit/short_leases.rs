//! When a session leaves a server that answers too late, and when a contender gives its place up.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);

fn leases() -> ShortLeases {
    ShortLeases::new(TIMEOUT)
}

/// The connection may last for a moment after that.
#[test]
fn session_leaves_a_server_once_after_the_session_timeout() {
    let mut leases = leases();
    let mut left = Vec::new();
    for second in 0..=25 {
        leases.note(SECOND * second, Some(0));
        if leases.leaves() {
            left.push(second);
        }
        assert!(!leases.leaves());
    }
    assert_eq!(left, [10, 20]);
}

#[test]
fn short_leases_more_than_the_session_timeout_apart_do_not_add_up() {
    let mut leases = leases();
    let mut now = Duration::ZERO;
    for _ in 0..5 {
        leases.note(now, Some(0));
        assert!(!leases.leaves());
        now += TIMEOUT + SECOND;
    }
    leases.note(now, Some(0));
    leases.note(now + TIMEOUT, Some(0));
    assert!(leases.leaves(), "these two do");
}

#[test]
fn short_leases_over_two_connections_do_not_add_up() {
    let mut leases = leases();
    for round in 0..10 {
        leases.note(SECOND * 5 * round, Some((round % 2).into()));
        assert!(!leases.leaves());
    }
}

/// A lease that nobody needs may lapse.
#[test]
fn lapse_counts_only_if_a_hold_was_granted_since_the_lapse_before() {
    let mut leases = leases();
    for second in 0..30 {
        leases.lapsed(SECOND * second, Some(0));
        assert!(!leases.leaves());
    }
    for second in [30, 40] {
        leases.granted();
        leases.lapsed(SECOND * second, Some(0));
        leases.lapsed(SECOND * second, Some(0));
    }
    assert!(leases.leaves());
}

/// The time that a contender has waited after these exchanges, in seconds: when each request was
/// sent, and when it was answered. The session leaves its server before the exchange with the number
/// `left`.
fn waited(exchanges: &[(u64, u64)], left: Option<usize>) -> Duration {
    let (mut wait, mut leases) = (LeaseWait::default(), leases());
    for (number, (sent, answered)) in exchanges.iter().enumerate() {
        leases.left += u64::from(left == Some(number));
        let exchange = Exchange {
            sent: Duration::from_secs(*sent),
            answered: Duration::from_secs(*answered),
            connection: Some(0),
        };
        assert!(!wait.is_over(&leases));
        wait.note(exchange, &leases, SECOND);
        assert_eq!(wait.answer, Duration::from_secs(answered - sent));
    }
    wait.waited
}

#[test]
fn contender_counts_its_requests_and_the_pauses_between_them() {
    assert_eq!(waited(&[(10, 13), (14, 17), (17, 19)], None), SECOND * 10);
}

#[test]
fn contender_does_not_count_the_time_in_which_no_server_answers() {
    assert_eq!(waited(&[(10, 13), (1_000, 1_002)], None), SECOND * 7);
}

#[test]
fn contender_counts_the_way_to_another_server_and_for_a_session_timeout_at_most() {
    assert_eq!(waited(&[(10, 13), (18, 20)], Some(1)), SECOND * 11);
    assert_eq!(waited(&[(10, 13), (1_000, 1_002)], Some(1)), SECOND * 14);
}

#[test]
fn contender_counts_a_pause_of_its_process_as_a_session_timeout() {
    assert_eq!(waited(&[(10, 100)], None), TIMEOUT);
}

#[test]
fn contender_gives_its_place_up_after_five_session_timeouts_and_the_next_one_after_one() {
    let wait = |timeouts| LeaseWait {
        waited: TIMEOUT * timeouts,
        ..LeaseWait::default()
    };
    let mut leases = leases();
    assert!(!wait(4).is_over(&leases) && wait(5).is_over(&leases));
    leases.has_given_up = true;
    assert!(!wait(0).is_over(&leases) && wait(1).is_over(&leases));
    leases.granted();
    assert!(!wait(4).is_over(&leases));
}
