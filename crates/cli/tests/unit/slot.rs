//! Tests of `src/queue/slot.rs`.

use super::*;

#[test]
fn times_are_shown_in_utc() {
    for (seconds, shown) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_164_800, "2024-02-29T00:00:00Z"),
        (1_774_008_000, "2026-03-20T12:00:00Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), shown);
    }
    let early = UNIX_EPOCH + Duration::from_millis(1_007);
    assert_eq!(utc(early), "1970-01-01T00:00:01.007Z");
}
