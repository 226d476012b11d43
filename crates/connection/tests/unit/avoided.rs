//! Tests of `src/session/avoided.rs`.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn request_is_tried_again_after_pauses_that_grow_until_it_is_answered() {
    let avoided = Avoided::new();
    let shared = avoided.clone();
    let mut now = 5 * SECOND;
    for _ in 0..MOST_BREAKS {
        assert!(!avoided.is_avoided(now));
        shared.closed(now, now + SECOND);
        now += 2 * SECOND;
    }
    now -= SECOND;
    let mut pause = FIRST_PAUSE;
    for _ in 0..20 {
        assert!(avoided.is_avoided(now + pause - Duration::from_millis(1)));
        now += pause;
        assert!(!avoided.is_avoided(now));
        shared.closed(now, now);
        pause = (pause * 2).min(FIRST_PAUSE * 2_u32.pow(MOST_DOUBLINGS));
    }
    shared.answered();
    assert!(!avoided.is_avoided(now));
}

#[test]
fn break_of_a_connection_counts_once_for_all_requests_that_it_met() {
    let avoided = Avoided::new();
    for _ in 0..9 {
        avoided.closed(SECOND, 2 * SECOND);
    }
    assert!(!avoided.is_avoided(2 * SECOND));
}

#[test]
fn request_that_is_sent_at_the_moment_of_a_break_does_not_count_again() {
    let avoided = Avoided::new();
    for _ in 0..MOST_BREAKS {
        avoided.closed(SECOND, SECOND);
    }
    assert!(!avoided.is_avoided(SECOND));
}
