//! The events of a hold: `acquired`, `suspended`, `resumed`, `lost`, `released`.
//!
//! A leader's hold says `leading` and `resigned` in place of `acquired` and `released`.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;

use crate::events::meter::{self, ACQUIRED, HELD, HOLDING, LOST, RELEASED, WAITED};
use crate::events::{Source, TARGET};
use crate::hold_state::{Ended, FencingToken, LossReason};
use crate::server::error::SessionEnd;

/// The record of one hold, as its owner has it.
///
/// If it is dropped before the hold is lost, the hold was released.
pub(crate) struct HoldRecord(Arc<Record>);

/// The record of one hold, with its suspensions and its loss.
pub(crate) struct Record {
    source: Arc<Source>,
    token: FencingToken,
    began: Instant,
    span: Span,
    is_suspended: AtomicBool,
    /// True once the end of the hold was reported. Only the first end is.
    has_ended: AtomicBool,
    /// True once a warning has said that the hold bars a contender of its own session.
    has_barred_own: AtomicBool,
    lost_at: LostAt,
}

/// When the loss of a hold was noticed.
pub(crate) type LostAt = Arc<OnceLock<Instant>>;

impl HoldRecord {
    /// Reports that a hold begins, in a span whose parent is the caller's.
    pub(crate) fn begin(
        source: Arc<Source>,
        caller: &Span,
        token: FencingToken,
        waited: Duration,
    ) -> HoldRecord {
        meter::count(ACQUIRED, Some(&source), None);
        meter::change(HOLDING, &source, 1.0);
        meter::record(WAITED, Some(&source), waited);
        let Source {
            recipe,
            name,
            path,
            leads,
        } = &*source;
        let number = token.get();
        let span = tracing::debug_span!(
            target: TARGET, parent: caller.id(), "hold", recipe, %name, %path, token = number
        );
        span.in_scope(|| match leads {
            true => tracing::info!(target: TARGET, %path, token = number, ?waited, "leading"),
            false => tracing::debug!(target: TARGET, %path, token = number, ?waited, "acquired"),
        });
        HoldRecord(Arc::new(Record {
            token,
            began: Instant::now(),
            span,
            is_suspended: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            has_barred_own: AtomicBool::new(false),
            lost_at: LostAt::default(),
            source,
        }))
    }

    /// The same hold continues as a hold of another recipe: a writer becomes a reader.
    pub(crate) fn replaced(self, recipe: &'static str) -> HoldRecord {
        let source = Source {
            recipe,
            ..(*self.0.source).clone()
        };
        let (caller, token) = (self.0.span.clone(), self.0.token);
        drop(self);
        HoldRecord::begin(Arc::new(source), &caller, token, Duration::ZERO)
    }

    pub(crate) fn shared(&self) -> Arc<Record> {
        self.0.clone()
    }

    /// When the loss was noticed, once it is. Does not keep the span open.
    pub(crate) fn lost_at(&self) -> LostAt {
        self.0.lost_at.clone()
    }

    /// Reports that the hold is over: released, or lost before.
    pub(crate) fn ended(&self, ended: Ended) {
        match ended {
            Ended::Released => self.0.released(),
            Ended::Lost(reason) => self.0.lost(reason),
        }
    }
}

impl Drop for HoldRecord {
    fn drop(&mut self) {
        self.0.released();
    }
}

impl Record {
    /// Reports that the hold is lost, unless it has ended.
    pub(crate) fn lost(&self, reason: LossReason) {
        let Some(held) = self.end() else { return };
        self.lost_at.get_or_init(Instant::now);
        let (path, token) = (&self.source.path, self.token.get());
        self.span.in_scope(|| {
            tracing::warn!(target: TARGET, %path, token, ?held, %reason, "lost");
        });
        meter::count(
            LOST,
            Some(&self.source),
            Some(("reason", reason_of(reason))),
        );
    }

    fn released(&self) {
        let Some(held) = self.end() else { return };
        let (path, token) = (&self.source.path, self.token.get());
        self.span.in_scope(|| match self.source.leads {
            true => tracing::info!(target: TARGET, %path, token, ?held, "resigned"),
            false => tracing::debug!(target: TARGET, %path, token, ?held, "released"),
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
    /// Does nothing if the hold is younger than `longest`.
    pub(crate) fn warn_of_own_wait(
        &self,
        contender: &str,
        holder: &str,
        waited: Duration,
        longest: Duration,
    ) {
        let is_young = self.began.elapsed() < longest;
        if is_young || self.has_barred_own.swap(true, Ordering::Relaxed) {
            return;
        }
        let path = &self.source.path;
        let holder = holder.rsplit('/').next().unwrap_or_default();
        tracing::warn!(
            target: TARGET, %path, contender, holder, ?waited, "waits behind its own process"
        );
    }

    /// How long the hold lasted, or `None` if its end was reported before.
    fn end(&self) -> Option<Duration> {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return None;
        }
        let held = self.began.elapsed();
        meter::change(HOLDING, &self.source, -1.0);
        meter::record(HELD, Some(&self.source), held);
        Some(held)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Record")
    }
}

/// The reason in a word, as a label of metrics.
fn reason_of(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Session(SessionEnd::Expired) => "session_expired",
        LossReason::Session(_) => "session_over",
        LossReason::LeaseElapsed => "lease_elapsed",
        LossReason::Deleted => "deleted",
        LossReason::Written => "written",
        LossReason::TimeLimit => "time_limit",
    }
}
