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
#[path = "../tests/unit/duration.rs"]
mod tests;
