//! Tests of `src/duration.rs`.

use super::*;

#[test]
fn numbers_with_and_without_a_unit_are_read() {
    let milliseconds = |text| parse(text).map(|duration| duration.as_millis());
    assert_eq!(milliseconds("30s"), Ok(30_000));
    assert_eq!(milliseconds("1.5m"), Ok(90_000));
    assert_eq!(milliseconds("500ms"), Ok(500));
    assert_eq!(milliseconds("20"), Ok(20_000));
    assert_eq!(milliseconds("0"), Ok(0));
}

#[test]
fn anything_else_is_refused() {
    for bad in [
        "",
        "s",
        "-1s",
        "1e3",
        "1 s",
        "inf",
        "1.2.3",
        "1w",
        "99999999999999999999d",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}
