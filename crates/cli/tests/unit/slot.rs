//! Tests of `src/queue/slot.rs`.

use std::time::{Duration, UNIX_EPOCH};

use super::*;

#[test]
fn times_are_shown_in_utc_and_those_too_late_as_the_last_one() {
    const LAST: &str = "9999-12-30T22:00:00.999999999Z";
    for (milliseconds, shown) in [
        (0, "1970-01-01T00:00:00Z"),
        (1_007, "1970-01-01T00:00:01.007Z"),
        (1_709_164_800_000, "2024-02-29T00:00:00Z"),
        (1_774_008_000_000, "2026-03-20T12:00:00Z"),
        (253_402_207_200_000, "9999-12-30T22:00:00Z"),
        (253_402_207_201_000, LAST),
        (253_402_300_800_000, LAST),
        (i64::MAX.unsigned_abs(), LAST),
    ] {
        let time = UNIX_EPOCH + Duration::from_millis(milliseconds);
        assert_eq!(utc(time), shown, "{milliseconds} ms");
    }
}
