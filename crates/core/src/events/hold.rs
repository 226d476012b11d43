//! The events of a hold: `acquired`, `suspended`, `resumed`, `lost`, `ended by close`, `released`.
//!
//! A leader's hold says `leading`, `resigned by close` and `resigned` in place of `acquired`, `ended
//! by close` and `released`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;

use crate::events::meter::{self, ACQUIRED, HELD, HOLDING, LOST, RELEASED, WAITED};
use crate::events::{Source, TARGET};
use crate::hold_state::{Ended, FencingToken, FirstLoss, Loss, LossReason};
use crate::path::last_segment;
use crate::server::error::SessionEnd;

pub(crate) struct HoldStart<'a> {
    pub(crate) token: FencingToken,
    /// The path of the holder's znode.
    pub(crate) path: &'a str,
    /// The time by the ensemble's clock.
    pub(crate) now: Duration,
}

/// The record of one hold, as its owner has it.
///
/// If it is dropped before the hold is lost, the hold was released.
pub(crate) struct HoldRecord(Arc<Record>);

/// The record of one hold, with its suspensions and its loss.
pub(crate) struct Record {
    source: Arc<Source>,
    token: FencingToken,
    /// The name of the holder's znode.
    znode: String,
    began: Instant,
    /// When the hold began, by the ensemble's clock.
    began_at: Duration,
    span: Span,
    is_suspended: AtomicBool,
    /// True once the end of the hold was reported. Only the first end is.
    has_ended: AtomicBool,
    /// True once a warning has said that the hold bars a contender of its own session.
    has_warned_of_own_wait: AtomicBool,
    /// Shared with the state of the hold, so that the state and the event name one reason.
    loss: FirstLoss,
}

impl HoldRecord {
    /// Reports that a hold begins, in a span whose parent is the caller's.
    pub(crate) fn begin(
        source: Arc<Source>,
        caller: &Span,
        granted: HoldStart<'_>,
        waited: Duration,
    ) -> HoldRecord {
        let HoldStart { token, path, now } = granted;
        let znode = last_segment(path).to_owned();
        meter::count(ACQUIRED, Some(&source), None);
        meter::change(HOLDING, &source, 1.0);
        meter::record(WAITED, Some(&source), waited);
        let Source {
            recipe, name, path, ..
        } = &*source;
        let number = token.get();
        let span = tracing::debug_span!(
            target: TARGET, parent: caller.id(), "hold", recipe, %name, %path, token = number
        );
        span.in_scope(|| match source.leads {
            true => tracing::info!(target: TARGET, %path, token = number, ?waited, "leading"),
            false => tracing::debug!(target: TARGET, %path, token = number, ?waited, "acquired"),
        });
        HoldRecord(Arc::new(Record {
            token,
            znode,
            began: Instant::now(),
            began_at: now,
            span,
            is_suspended: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            has_warned_of_own_wait: AtomicBool::new(false),
            loss: FirstLoss::default(),
            source,
        }))
    }

    /// The same hold continues as a hold of another recipe: a writer becomes a reader.
    pub(crate) fn replaced(self, recipe: &'static str, granted: HoldStart<'_>) -> HoldRecord {
        let source = Source {
            recipe,
            ..(*self.0.source).clone()
        };
        let caller = self.0.span.clone();
        drop(self);
        HoldRecord::begin(Arc::new(source), &caller, granted, Duration::ZERO)
    }

    pub(crate) fn shared(&self) -> Arc<Record> {
        self.0.clone()
    }

    /// The loss, once it is reported. The result does not keep the span open.
    pub(crate) fn loss(&self) -> FirstLoss {
        self.0.loss.clone()
    }

    /// Reports that the hold is over: released, or lost before `now` by the ensemble's clock.
    pub(crate) fn ended(&self, ended: Ended, now: Duration) {
        match ended {
            Ended::Released => self.0.released(),
            Ended::Lost(reason) => self.0.lost(reason, now),
        }
    }
}

impl Drop for HoldRecord {
    fn drop(&mut self) {
        self.0.released();
    }
}

impl Record {
    /// Reports that the hold was lost at this time by the ensemble's clock, unless it has ended.
    ///
    /// If a loss was reported before, that one is named. The own close of the session is no loss.
    pub(crate) fn lost(&self, reason: LossReason, at: Duration) {
        let Loss { reason, at, .. } = self.loss.first(reason, at);
        let held = at.saturating_sub(self.began_at);
        if !self.end(held) {
            return;
        }
        match reason.is_own_close() {
            true => self.report_release(held, true),
            false => self.report_loss(reason, held),
        }
    }

    fn report_loss(&self, reason: LossReason, held: Duration) {
        let Source {
            recipe, name, path, ..
        } = &*self.source;
        let (owner, znode, token) = (&self.source.owner, &*self.znode, self.token.get());
        // A span of level debug may be off, so the event has its fields, too.
        self.span.in_scope(|| {
            tracing::warn!(
                target: TARGET, recipe, %name, %path, znode, %owner, token, ?held, %reason, "lost"
            );
        });
        let label = ("reason", reason_of(reason));
        meter::count(LOST, Some(&self.source), Some(label));
    }

    fn released(&self) {
        let held = self.began.elapsed();
        if self.end(held) {
            self.report_release(held, false);
        }
    }

    fn report_release(&self, held: Duration, by_close: bool) {
        let (path, token) = (&self.source.path, self.token.get());
        self.span.in_scope(|| match (self.source.leads, by_close) {
            (true, true) => {
                tracing::info!(target: TARGET, %path, token, ?held, "resigned by close")
            }
            (true, false) => tracing::info!(target: TARGET, %path, token, ?held, "resigned"),
            (false, true) => tracing::debug!(target: TARGET, %path, token, ?held, "ended by close"),
            (false, false) => tracing::debug!(target: TARGET, %path, token, ?held, "released"),
        });
        meter::count(RELEASED, Some(&self.source), None);
    }

    /// Reports whether the server answers, if that has changed and the hold has not ended.
    pub(crate) fn suspended(&self, is_suspended: bool) {
        let was = self.is_suspended.swap(is_suspended, Ordering::Relaxed);
        if was == is_suspended || self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        let (path, token) = (&self.source.path, self.token.get());
        self.span.in_scope(|| match is_suspended {
            true => tracing::debug!(target: TARGET, %path, token, "suspended"),
            false => tracing::debug!(target: TARGET, %path, token, "resumed"),
        });
    }

    /// Warns that a contender of the same session waits behind this hold, once for each hold.
    ///
    /// The method does nothing if the hold is younger than `longest`.
    pub(crate) fn warn_of_own_wait(
        &self,
        contender: &str,
        holder: &str,
        waited: Duration,
        longest: Duration,
    ) {
        let is_young = self.began.elapsed() < longest;
        if is_young || self.has_warned_of_own_wait.swap(true, Ordering::Relaxed) {
            return;
        }
        let path = &self.source.path;
        let holder = last_segment(holder);
        tracing::warn!(
            target: TARGET, %path, contender, holder, ?waited, "waits behind its own process"
        );
    }

    /// Ends the record after this time. False if its end was reported before.
    fn end(&self, held: Duration) -> bool {
        let is_first = !self.has_ended.swap(true, Ordering::Relaxed);
        if is_first {
            meter::change(HOLDING, &self.source, -1.0);
            meter::record(HELD, Some(&self.source), held);
        }
        is_first
    }
}

/// The reason in a word, as a label of metrics.
fn reason_of(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Session(SessionEnd::Expired) => "session_expired",
        LossReason::Session(_) => "session_over",
        LossReason::LeaseElapsed => "lease_elapsed",
        LossReason::Deleted => "deleted",
        LossReason::DeletedOrSessionOver => "deleted_or_session_over",
        LossReason::Written => "written",
        LossReason::TimeLimit => "time_limit",
    }
}
