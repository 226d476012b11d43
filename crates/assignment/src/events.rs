//! Reports what happens to `tracing` and, with the feature `metrics`, to the `metrics` facade.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::{Error, FencingToken, LossReason, NodePath};

use crate::next_plans::Move;
use crate::patience::Fault;
use crate::pieces::Unreadable;
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

/// What the events of one worker have in common.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    pub(crate) path: NodePath,
    pub(crate) worker: Arc<str>,
    /// The name that the user gives, or the empty text.
    pub(crate) name: Arc<str>,
}

/// An event at this level, with the path of the assignment and the worker that reports it.
macro_rules! report {
    ($reporter:ident, $level:ident, $text:literal, $($fields:tt)*) => {{
        let (path, by) = (&$reporter.path, &$reporter.worker);
        tracing::$level!(target: TARGET, %path, worker = %by, $($fields)*, $text);
    }};
}

impl Reporter {
    /// The leader has written plans by which these partitions move.
    pub(crate) fn planned(&self, moves: &[Move], deferred: usize) {
        let path = &self.path;
        for each in moves {
            let (partition, to, reason) = (&each.partition, &each.to, each.reason.word());
            let from = each.from.as_deref().unwrap_or_default();
            tracing::info!(target: TARGET, %path, partition, from, to, reason, "partition moves");
            count(MOVES, &self.name, reason);
        }
        tracing::debug!(target: TARGET, %path, moves = moves.len(), deferred, "planned");
        gauge(DEFERRED, &self.name, deferred);
    }

    /// A move makes no progress, and the leader gives this worker no more until it does.
    pub(crate) fn set_aside(&self, worker: &str, partition: &str, fault: Fault) {
        let (path, reason) = (&self.path, fault.word());
        tracing::warn!(target: TARGET, %path, worker, partition, reason, "worker set aside");
    }

    /// A worker that was set aside has shown progress, or is another one now.
    pub(crate) fn back(&self, worker: &str) {
        let path = &self.path;
        tracing::info!(target: TARGET, %path, worker, "worker set aside no longer");
    }

    /// The worker has opened a further session for its locks, and has so many now.
    pub(crate) fn further_session(&self, sessions: usize) {
        report!(self, info, "further session", sessions);
    }

    /// `owns` is the number of partitions that the worker owns now.
    pub(crate) fn owned(&self, partition: &str, token: FencingToken, owns: usize) {
        report!(
            self,
            debug,
            "partition owned",
            partition,
            token = token.get()
        );
        gauge(OWNED, &self.name, owns);
    }

    pub(crate) fn draining(&self, partition: &str, why: Release) {
        report!(
            self,
            debug,
            "partition draining",
            partition,
            reason = why.word()
        );
    }

    /// `owns` is the number of partitions that the worker owns now.
    pub(crate) fn released(&self, partition: &str, token: FencingToken, why: Release, owns: usize) {
        let (token, reason) = (token.get(), why.word());
        report!(self, debug, "partition released", partition, token, reason);
        count(RELEASES, &self.name, reason);
        gauge(OWNED, &self.name, owns);
    }

    /// The work on a partition returned before the partition was to be released.
    pub(crate) fn worked<E: fmt::Display>(&self, partition: &str, result: Result<(), E>) {
        match result {
            Ok(()) => report!(self, info, "work returned early", partition),
            Err(error) => report!(self, warn, "work failed", partition, %error),
        }
    }

    /// The work did not end in time, and was dropped.
    pub(crate) fn dropped(&self, partition: &str, after: Duration) {
        report!(self, warn, "work dropped", partition, ?after);
    }

    /// The work has not ended yet, and there is no limit.
    pub(crate) fn still_draining(&self, partition: &str, waited: Duration) {
        report!(self, warn, "work does not end", partition, ?waited);
    }

    pub(crate) fn not_acquired(&self, partition: &str, error: &Error) {
        match may_pass(error) {
            true => report!(self, debug, "acquiring the partition again", partition, %error),
            false => report!(self, warn, "partition not acquired", partition, %error),
        }
    }

    pub(crate) fn not_released(&self, partition: &str, error: &Error) {
        report!(self, debug, "partition lost before its release", partition, %error);
    }

    pub(crate) fn no_plan(&self) {
        tracing::debug!(target: TARGET, path = %self.path, worker = %self.worker, "no plan");
    }

    pub(crate) fn plan_unreadable(&self, znode: &str, problem: &Unreadable) {
        report!(self, warn, "plan not read", znode, %problem);
    }

    /// The record of the partitions cannot be read, so nothing is planned.
    pub(crate) fn record_unreadable(&self, znode: &str, problem: &Unreadable) {
        let remedy = "set_partitions writes the record anew";
        report!(self, warn, "partitions not read", znode, %problem, remedy);
    }

    /// Other partitions are recorded than those that this worker was made with.
    pub(crate) fn other_partitions(&self, recorded: usize, given: usize) {
        let remedy = "set_partitions replaces the recorded ones";
        report!(
            self,
            warn,
            "other partitions are recorded",
            recorded,
            given,
            remedy
        );
    }

    /// The leader cannot plan, and resigns.
    pub(crate) fn not_planned(&self, error: &Error) {
        report!(self, warn, "not planned", %error);
    }

    pub(crate) fn planning_again(&self, error: &Error) {
        report!(self, debug, "planning again", %error);
    }
}

fn count(metric: &'static str, name: &Arc<str>, reason: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!(metric, "name" => name.to_string(), "reason" => reason).increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = (metric, name, reason);
}

fn gauge(metric: &'static str, name: &Arc<str>, value: usize) {
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
