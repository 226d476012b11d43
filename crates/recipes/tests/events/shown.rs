//! Events and metrics as text, for snapshots.

use std::fmt::Write;

use zookeeper_recipes_suite::log::Line;

/// Fields that a fault before them changes. Equal values have the same number.
const NUMBERED: [&str; 5] = ["token", "session", "znode", "behind", "partition"];
/// Fields that are shown in whole seconds.
const TIMES: [&str; 2] = ["waited", "held"];

/// A line for each event: its level, its innermost span, its name and its fields.
pub(crate) fn events<'l>(lines: impl IntoIterator<Item = &'l Line>) -> String {
    let mut numbered: Vec<&str> = Vec::new();
    let mut text = String::new();
    for line in lines {
        let span = line
            .spans
            .last()
            .map_or(String::new(), |it| format!("{it}: "));
        let _ = write!(text, "{} {span}{}", line.level, line.message);
        for (field, value) in &line.fields {
            let value = if NUMBERED.contains(&&**field) {
                let place = numbered.iter().position(|it| it == value);
                let place = place.unwrap_or_else(|| {
                    numbered.push(value);
                    numbered.len() - 1
                });
                format!("#{place}")
            } else if TIMES.contains(&&**field) {
                let is_short = value.ends_with("ms") || value.ends_with("ns");
                let seconds = value.trim_end_matches('s').split('.').next();
                let seconds = seconds.filter(|_| !is_short);
                format!("{}s", seconds.unwrap_or("0"))
            } else if field == "owner" {
                // The rest is the host and the process.
                value.split('@').next().unwrap_or_default().to_owned()
            } else {
                value.clone()
            };
            let _ = write!(text, " | {field} {value}");
        }
        text.push('\n');
    }
    text
}

/// A line for each metric: its name, its labels, and its value or its number of values.
#[cfg(feature = "metrics")]
pub(crate) fn metrics(recorder: &metrics_util::debugging::DebuggingRecorder) -> String {
    use metrics_util::debugging::DebugValue;

    #[cfg(feature = "assignment")]
    zookeeper_recipes::assignment::describe_metrics();
    #[cfg(not(feature = "assignment"))]
    zookeeper_recipes::common::describe_metrics();
    let metrics = recorder.snapshotter().snapshot().into_vec();
    let mut lines = Vec::from_iter(metrics.into_iter().map(|(key, _, description, value)| {
        let key = key.key();
        let mut text = key.name().replacen("zookeeper_recipes_", "", 1);
        for label in key.labels() {
            let _ = write!(text, " {}={:?}", label.key(), label.value());
        }
        let _ = match value {
            DebugValue::Counter(value) => write!(text, ": {value}"),
            DebugValue::Gauge(value) => write!(text, ": {value}"),
            DebugValue::Histogram(values) => {
                let seconds = values.iter().map(|it| it.trunc());
                write!(text, ": {:?}", Vec::from_iter(seconds))
            }
        };
        text + if description.is_some() {
            ""
        } else {
            " (not described)"
        }
    }));
    lines.sort();
    lines.join("\n")
}
