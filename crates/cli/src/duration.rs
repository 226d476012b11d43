//! Durations as people write them: `30s`, `1.5m`, `500ms`, `20`.

use std::time::Duration;

const UNITS: [(&str, f64); 5] = [
    ("ms", 0.001),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

/// Reads a number with a unit. A number without a unit is in seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || "write it as 30s, 1.5m or 500ms".to_owned();
    let unit = |(name, seconds)| Some((text.strip_suffix(name)?, seconds));
    let (number, seconds) = UNITS.into_iter().find_map(unit).unwrap_or((text, 1.0));
    if number.is_empty()
        || !number
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.'))
    {
        return Err(wrong());
    }
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
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
}
