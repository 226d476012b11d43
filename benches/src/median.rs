//! The median of many measurements.

/// The median of these values; `None` if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => Some((values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0),
        _ => values.get(middle).copied(),
    }
}
