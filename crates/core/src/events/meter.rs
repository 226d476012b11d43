//! The metrics, reported to the recorder of the `metrics` facade if the feature `metrics` is on.

use std::time::Duration;

use crate::events::RecipeInfo;

pub(crate) const ATTEMPTS: &str = "zookeeper_recipes_attempts_total";
pub(crate) const WAITING: &str = "zookeeper_recipes_waiting";
pub(crate) const FAILED: &str = "zookeeper_recipes_failed_total";
pub(crate) const ACQUIRED: &str = "zookeeper_recipes_acquired_total";
pub(crate) const HOLDING: &str = "zookeeper_recipes_holding";
pub(crate) const WAITED: &str = "zookeeper_recipes_waited_seconds";
pub(crate) const HANDOFF: &str = "zookeeper_recipes_handoff_seconds";
pub(crate) const LOST: &str = "zookeeper_recipes_lost_total";
pub(crate) const RELEASED: &str = "zookeeper_recipes_released_total";
pub(crate) const HELD: &str = "zookeeper_recipes_held_seconds";
pub(crate) const OPENED: &str = "zookeeper_recipes_session_opened_total";
pub(crate) const RECONNECTS: &str = "zookeeper_recipes_session_reconnects_total";
pub(crate) const EXPIRIES: &str = "zookeeper_recipes_session_expiries_total";
pub(crate) const PROBES: &str = "zookeeper_recipes_session_probe_seconds";

/// Counts an event. `label` is a label of its own.
pub(crate) fn count(
    name: &'static str,
    info: Option<&RecipeInfo>,
    label: Option<(&'static str, &'static str)>,
) {
    #[cfg(feature = "metrics")]
    metrics::counter!(name, labels(info, label)).increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = (name, info, label);
}

pub(crate) fn change(name: &'static str, info: &RecipeInfo, by: f64) {
    #[cfg(feature = "metrics")]
    metrics::gauge!(name, labels(Some(info), None)).increment(by);
    #[cfg(not(feature = "metrics"))]
    let _ = (name, info, by);
}

pub(crate) fn record(name: &'static str, info: Option<&RecipeInfo>, took: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!(name, labels(info, None)).record(took);
    #[cfg(not(feature = "metrics"))]
    let _ = (name, info, took);
}

#[cfg(feature = "metrics")]
fn labels(
    info: Option<&RecipeInfo>,
    label: Option<(&'static str, &'static str)>,
) -> Vec<metrics::Label> {
    use metrics::Label;
    let of = |info: &RecipeInfo| {
        [
            Label::from_static_parts("recipe", info.recipe),
            Label::new("name", info.name.clone()),
        ]
    };
    let label = label.map(|(key, value)| Label::from_static_parts(key, value));
    info.map(of).into_iter().flatten().chain(label).collect()
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
