//! What happens, told to `tracing` and, with the feature `metrics`, to the `metrics` facade.
//!
//! Each event is told in one place, which is here: the other rooms call these functions, and name
//! no event. [`docs::events`](crate::docs::events) lists the events and the metrics.

pub(crate) mod attempt;
pub(crate) mod holding;
#[cfg(feature = "metrics")]
#[path = "events/metrics.rs"]
pub(crate) mod meter;
#[cfg(not(feature = "metrics"))]
#[path = "events/no_metrics.rs"]
pub(crate) mod meter;
pub(crate) mod session;

use std::sync::Arc;
use std::time::Duration;

use crate::path::NodePath;

/// The target of all events and spans.
pub(crate) const TARGET: &str = "zookeeper_recipes";

/// What the events of one recipe have in common.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The kind of recipe, such as `lock`.
    pub(crate) recipe: &'static str,
    /// The name that the user gives, or the empty text.
    pub(crate) name: Arc<str>,
    pub(crate) path: NodePath,
    /// True if who holds, leads.
    pub(crate) leads: bool,
}

/// What is measured of a recipe.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "nothing reads them")
)]
pub(crate) enum Measured {
    AttemptBegan,
    /// The attempt is over: it has acquired, failed or been dropped.
    AttemptEnded,
    Failed(&'static str),
    Acquired(Duration),
    /// The time from the event that woke the waiter to the hold.
    Handoff(Duration),
    Lost(&'static str),
    Released,
    /// The hold is over, after this time.
    HoldEnded(Duration),
}

/// What is measured of the sessions of the process.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "nothing reads them")
)]
pub(crate) enum MeasuredSession {
    Opened,
    Reconnected,
    Expired,
    /// A probe was answered after this time.
    Answered(Duration),
}
