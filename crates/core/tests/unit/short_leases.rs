//! When a session leaves a server that answers too late.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);

fn leases() -> ShortLeases {
    ShortLeases::new(TIMEOUT)
}

/// How long leases are too short, each second from `now` on, until the session leaves the server.
fn leaves_after(leases: &mut ShortLeases, now: &mut Duration, connection: u64) -> Duration {
    let began = *now;
    loop {
        leases.note(*now, Some(connection));
        if leases.leaves() {
            return *now - began;
        }
        *now += SECOND;
        assert!(*now - began < TIMEOUT * 1_000, "it stays for ever");
    }
}

#[test]
fn session_stays_twice_as_long_at_each_further_server() {
    let (mut leases, mut now) = (leases(), Duration::ZERO);
    for server in 0..MOST_DOUBLINGS + 2 {
        let stays = TIMEOUT * 2_u32.pow(server.min(MOST_DOUBLINGS));
        assert_eq!(leaves_after(&mut leases, &mut now, server.into()), stays);
    }
}

/// The connection may last for a moment after that.
#[test]
fn session_leaves_a_server_once() {
    let (mut leases, mut now) = (leases(), Duration::ZERO);
    leaves_after(&mut leases, &mut now, 0);
    assert!(!leases.leaves());
    assert_eq!(leaves_after(&mut leases, &mut now, 0), TIMEOUT * 2);
}

#[test]
fn short_leases_more_than_the_session_timeout_apart_are_no_series() {
    let mut leases = leases();
    let mut now = Duration::ZERO;
    for _ in 0..5 {
        leases.note(now, Some(0));
        assert!(!leases.leaves());
        now += TIMEOUT + SECOND;
    }
    leases.note(now, Some(0));
    leases.note(now + TIMEOUT, Some(0));
    assert!(leases.leaves(), "these two are one");
}

#[test]
fn time_at_a_server_begins_anew_after_a_while_without_short_leases() {
    let (mut leases, mut now) = (leases(), Duration::ZERO);
    leaves_after(&mut leases, &mut now, 0);
    assert_eq!(leaves_after(&mut leases, &mut now, 1), TIMEOUT * 2);
    now += TIMEOUT + SECOND;
    assert_eq!(leaves_after(&mut leases, &mut now, 2), TIMEOUT);
}

#[test]
fn series_over_another_connection_is_another_one() {
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
