//! The metrics, reported to the recorder of the `metrics` facade if the feature `metrics` is on.

use std::time::Duration;

#[cfg(feature = "metrics")]
use metrics::{Key, Label, Level, Metadata, with_recorder};

use crate::events::RecipeInfo;
#[cfg(feature = "metrics")]
use crate::events::keys::*;

/// Counts an event. `label` is a label of its own.
pub(crate) fn count(
    name: &'static str,
    info: Option<&RecipeInfo>,
    label: Option<(&'static str, &'static str)>,
) {
    #[cfg(feature = "metrics")]
    with_key(name, info, |key| {
        let labelled = label.map(|(key_of, value)| {
            key.with_extra_labels(vec![Label::from_static_parts(key_of, value)])
        });
        let key = labelled.as_ref().unwrap_or(key);
        with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(1);
    });
    #[cfg(not(feature = "metrics"))]
    let _ = (name, info, label);
}

pub(crate) fn change(name: &'static str, info: &RecipeInfo, by: f64) {
    #[cfg(feature = "metrics")]
    with_key(name, Some(info), |key| {
        with_recorder(|recorder| recorder.register_gauge(key, &METADATA)).increment(by);
    });
    #[cfg(not(feature = "metrics"))]
    let _ = (name, info, by);
}

pub(crate) fn record(name: &'static str, info: Option<&RecipeInfo>, took: Duration) {
    #[cfg(feature = "metrics")]
    with_key(name, info, |key| {
        with_recorder(|recorder| recorder.register_histogram(key, &METADATA)).record(took);
    });
    #[cfg(not(feature = "metrics"))]
    let _ = (name, info, took);
}

#[cfg(feature = "metrics")]
static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// Finds the key of a metric of a recipe, or of a session.
#[cfg(feature = "metrics")]
fn with_key(name: &'static str, info: Option<&RecipeInfo>, work: impl FnOnce(&Key)) {
    match info.and_then(|info| info.keys.get(name)) {
        Some(key) => work(key),
        None => work(&Key::from_static_name(name)),
    }
}

/// Describes the metrics to the recorder. Call it once, after the recorder is installed.
///
/// [`docs::events`](crate::docs::events) lists the metrics.
#[cfg(feature = "metrics")]
pub fn describe_metrics() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_counter!(ATTEMPTS, "Calls that acquire or try to");
    describe_gauge!(WAITING, "Attempts that are under way now");
    describe_counter!(FAILED, "Attempts that acquired nothing, by kind");
    describe_counter!(ACQUIRED, "Attempts that acquired");
    describe_gauge!(HOLDING, "Holds that this process has now");
    describe_histogram!(WAITED, Unit::Seconds, "From the call to the hold");
    describe_histogram!(
        HANDOFF,
        Unit::Seconds,
        "From the news that a contender before it has left to the hold"
    );
    describe_counter!(LOST, "Holds that were lost, by reason");
    describe_counter!(
        RELEASED,
        "Holds that were released or dropped, or ended as their process closed the session"
    );
    describe_histogram!(HELD, Unit::Seconds, "From the hold to its end");
    describe_counter!(OPENED, "ZooKeeper sessions that were opened");
    describe_counter!(RECONNECTS, "Reconnects within a ZooKeeper session");
    describe_counter!(EXPIRIES, "ZooKeeper sessions that expired");
    describe_histogram!(PROBES, Unit::Seconds, "Round trips of the probes");
}
