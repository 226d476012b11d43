//! The median and the extremes of many measurements.

/// The median of some measurements, and their extremes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub least: f64,
    /// As many measurements are above it as below it.
    pub median: f64,
    pub most: f64,
}

impl Spread {
    /// The spread of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => (values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0,
            _ => *values.get(middle)?,
        };
        Some(Spread {
            least: *values.first()?,
            median,
            most: *values.last()?,
        })
    }
}
