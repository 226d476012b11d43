//! When a session leaves a server that answers too late.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);

fn leases() -> ShortLeases {
    ShortLeases::new(TIMEOUT)
}

/// How long leases are too short, each second from `now` on, until the session leaves the server.
fn leaves_after(leases: &mut ShortLeases, now: &mut Duration) -> Duration {
    let began = *now;
    loop {
        leases.note(*now);
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
        assert_eq!(leaves_after(&mut leases, &mut now), stays);
    }
}

/// The connection may last for a moment after that.
#[test]
fn session_leaves_a_server_once() {
    let (mut leases, mut now) = (leases(), Duration::ZERO);
    leaves_after(&mut leases, &mut now);
    assert!(!leases.leaves());
    assert_eq!(leaves_after(&mut leases, &mut now), TIMEOUT * 2);
}

#[test]
fn short_leases_more_than_the_session_timeout_apart_are_no_series() {
    let mut leases = leases();
    let mut now = Duration::ZERO;
    for _ in 0..5 {
        leases.note(now);
        assert!(!leases.leaves());
        now += TIMEOUT + SECOND;
    }
    leases.note(now);
    leases.note(now + TIMEOUT);
    assert!(leases.leaves(), "these two are one");
}

#[test]
fn time_at_a_server_begins_anew_after_a_while_without_short_leases() {
    let (mut leases, mut now) = (leases(), Duration::ZERO);
    leaves_after(&mut leases, &mut now);
    assert_eq!(leaves_after(&mut leases, &mut now), TIMEOUT * 2);
    now += TIMEOUT + SECOND;
    assert_eq!(leaves_after(&mut leases, &mut now), TIMEOUT);
}

/// A lease that nobody needs may lapse.
#[test]
fn lapse_counts_only_if_a_hold_was_granted_since_the_lapse_before() {
    let mut leases = leases();
    for second in 0..30 {
        leases.lapsed(SECOND * second);
        assert!(!leases.leaves());
    }
    for second in [30, 40] {
        leases.granted();
        leases.lapsed(SECOND * second);
        leases.lapsed(SECOND * second);
    }
    assert!(leases.leaves());
}
