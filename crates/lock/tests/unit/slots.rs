//! When a slot begins.

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

/// The beginning of the slot at this time, in seconds since 1970.
fn begins(every: Duration, offset: Duration, at: Duration) -> u64 {
    let slots = Slots::new(every, offset).expect("good slots");
    slots.at(at.as_millis() as u64) / 1_000
}

#[test]
fn slot_begins_at_a_multiple_of_its_length_after_its_offset() {
    assert_eq!(begins(HOUR, Duration::ZERO, minutes(60)), 3_600);
    assert_eq!(begins(HOUR, Duration::ZERO, minutes(119)), 3_600);
    assert_eq!(begins(HOUR, minutes(15), minutes(74)), 900);
    assert_eq!(begins(HOUR, minutes(15), minutes(75)), 4_500);
    // An offset of several lengths is one of less than a length.
    assert_eq!(begins(HOUR, minutes(135), minutes(75)), 4_500);
    assert_eq!(begins(HOUR, minutes(15), minutes(3)), 0);
}

#[test]
fn slot_of_a_length_that_divides_a_day_begins_at_midnight() {
    let noon_of_some_day = Duration::from_secs(1_774_008_000);
    let midnight = noon_of_some_day - 12 * HOUR;
    for every in [minutes(1), minutes(90), HOUR, 8 * HOUR, DAY] {
        let at = midnight + Duration::from_secs(1);
        assert_eq!(begins(every, Duration::ZERO, at), midnight.as_secs());
    }
}

#[test]
fn week_begins_on_monday() {
    // Friday, 2026-03-20, at noon.
    let friday = Duration::from_secs(1_774_008_000);
    let monday = 1_773_619_200;
    assert_eq!(begins(7 * DAY, Duration::ZERO, friday), monday);
    let of_tuesday = DAY + HOUR;
    let tuesday = monday + of_tuesday.as_secs();
    assert_eq!(begins(7 * DAY, of_tuesday, friday), tuesday);
    let two_weeks = begins(14 * DAY, Duration::ZERO, friday);
    assert!([monday, monday - 7 * 86_400].contains(&two_weeks));
    assert_eq!(begins(7 * DAY, Duration::ZERO, DAY), 0);
}

#[test]
fn length_that_does_not_fit_days_is_refused() {
    for every in [
        Duration::ZERO,
        Duration::from_micros(1_500),
        Duration::MAX,
        7 * HOUR,
        25 * HOUR,
        minutes(50),
    ] {
        assert!(Slots::new(every, Duration::ZERO).is_err(), "{every:?}");
    }
    assert!(Slots::new(HOUR, Duration::from_micros(1)).is_err());
}
