//! Tables for people, and the ages in them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The text of a cell that may be empty.
pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text.to_owned()
    }
}

/// Pads the columns. Those of these indices are numbers, which are at the right.
pub(crate) fn aligned(rows: &[Vec<String>], numbers: &[usize]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let padded = cells.map(|(column, (cell, width))| match numbers.contains(&column) {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// How long ago this was, as text. Both times are in milliseconds since 1970.
pub(crate) fn age(then: i64, now: i64) -> String {
    age_of(elapsed(then, now))
}

/// How long ago this was. Both times are in milliseconds since 1970.
pub(crate) fn elapsed(then: i64, now: i64) -> Duration {
    Duration::from_millis((now - then).max(0).unsigned_abs())
}

/// A time in at most two units.
pub(crate) fn age_of(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// The time now, in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    milliseconds(SystemTime::now())
}

/// A time in milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "../../tests/unit/table.rs"]
mod tests;
