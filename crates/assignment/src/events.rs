//! Reports what happens to `tracing` and, with the feature `metrics`, to the `metrics` facade.

use zookeeper_recipes_core::{Error, LossReason};

use crate::assignment::Assignment;
use crate::next_plans::Move;
use crate::patience::Fault;
use crate::retry::may_pass;

/// The target of all events, as in the other crates.
pub(crate) const TARGET: &str = "zookeeper_recipes";

const OWNED: &str = "zookeeper_recipes_assignment_owned";
const MOVES: &str = "zookeeper_recipes_assignment_moves_total";
const DEFERRED: &str = "zookeeper_recipes_assignment_deferred";
const RELEASES: &str = "zookeeper_recipes_assignment_releases_total";

/// Why a worker has released a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// The next owner waited behind it.
    Given,
    /// No other worker came in time, and the plan gives the partition to one.
    NobodyCame,
    NotPlanned,
    /// The worker ends.
    End,
    /// The work returned.
    Worked,
    Lost(LossReason),
}

impl Release {
    fn word(self) -> &'static str {
        match self {
            Release::Given => "given",
            Release::NobodyCame => "nobody_came",
            Release::NotPlanned => "not_planned",
            Release::End => "shutdown",
            Release::Worked => "work_returned",
            Release::Lost(reason) if reason.is_own_close() => "closed",
            Release::Lost(_) => "lost",
        }
    }
}

/// An event at this level, with the path of the assignment and the worker that reports it.
macro_rules! report {
    ($assignment:expr, $level:ident, $text:literal $(, $($fields:tt)*)?) => {{
        let (path, by) = (&$assignment.layout.base, &$assignment.id);
        tracing::$level!(target: $crate::events::TARGET, %path, worker = %by, $($($fields)*,)? $text);
    }};
}
pub(crate) use report;

impl Assignment {
    /// The leader has written plans by which these partitions move.
    pub(crate) fn report_plans(&self, moves: &[Move], deferred: usize) {
        let path = &self.layout.base;
        for each in moves {
            let (partition, to, reason) = (&each.partition, &each.to, each.reason);
            let from = each.from.as_deref().unwrap_or_default();
            tracing::info!(target: TARGET, %path, partition, from, to, reason, "partition moves");
            count(MOVES, &self.options.name, reason);
        }
        tracing::debug!(target: TARGET, %path, moves = moves.len(), deferred, "planned");
        gauge(DEFERRED, &self.options.name, deferred);
    }

    /// A move makes no progress, and the leader gives this worker no more until it does.
    pub(crate) fn report_set_aside(&self, worker: &str, partition: &str, fault: Fault) {
        let (path, reason) = (&self.layout.base, fault.word());
        tracing::warn!(target: TARGET, %path, worker, partition, reason, "worker set aside");
    }

    /// `owns` is the number of partitions that the worker owns now.
    pub(crate) fn report_owned(&self, partition: &str, token: i64, owns: usize) {
        report!(self, debug, "partition owned", partition, token);
        gauge(OWNED, &self.options.name, owns);
    }

    pub(crate) fn report_draining(&self, partition: &str, why: Release) {
        let reason = why.word();
        report!(self, debug, "partition draining", partition, reason);
    }

    pub(crate) fn report_released(&self, partition: &str, token: i64, why: Release, owns: usize) {
        let reason = why.word();
        report!(self, debug, "partition released", partition, token, reason);
        count(RELEASES, &self.options.name, reason);
        gauge(OWNED, &self.options.name, owns);
    }

    /// The work on a partition returned before the partition was to be released.
    pub(crate) fn report_worked(&self, partition: &str, result: Result<(), String>) {
        match result {
            Ok(()) => report!(self, info, "work returned early", partition),
            Err(error) => report!(self, warn, "work failed", partition, %error),
        }
    }

    pub(crate) fn report_not_acquired(&self, partition: &str, error: &Error) {
        match may_pass(error) {
            true => report!(self, debug, "acquiring the partition again", partition, %error),
            false => report!(self, warn, "partition not acquired", partition, %error),
        }
    }
}

fn count(metric: &'static str, name: &str, reason: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!(metric, "name" => name.to_string(), "reason" => reason).increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = (metric, name, reason);
}

fn gauge(metric: &'static str, name: &str, value: usize) {
    #[cfg(feature = "metrics")]
    metrics::gauge!(metric, "name" => name.to_string()).set(value as f64);
    #[cfg(not(feature = "metrics"))]
    let _ = (metric, name, value);
}

/// Describes the metrics to the recorder. Call it once, after the recorder is installed.
///
/// It describes those of [`common::describe_metrics`](crate::common::describe_metrics), too.
#[cfg(feature = "metrics")]
pub fn describe_metrics() {
    use metrics::{describe_counter, describe_gauge};
    zookeeper_recipes_core::describe_metrics();
    describe_gauge!(OWNED, "Partitions that this worker owns now");
    describe_counter!(
        MOVES,
        "Partitions to which this leader gave another worker, by reason"
    );
    describe_gauge!(
        DEFERRED,
        "Moves that wait, because enough partitions move already"
    );
    describe_counter!(
        RELEASES,
        "Partitions that this worker released or lost, by reason"
    );
}
