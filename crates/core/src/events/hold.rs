//! The events of a hold: `acquired`, `lost`, `ended by close`, `released`.
//!
//! A leader's hold says `leading`, `resigned by close` and `resigned` in place of `acquired`, `ended
//! by close` and `released`.

use std::sync::Arc;
use std::time::Duration;

use tracing::Span;

use crate::events::keys::{ACQUIRED, HELD, HOLDING, LOST, RELEASED, WAITED};
use crate::events::meter;
use crate::events::{RecipeInfo, TARGET};
use crate::hold_state::{FencingToken, LossReason};
use crate::path::last_segment;
use crate::server::error::SessionEnd;

/// Reports one hold. It does not know how the hold ends.
#[derive(Clone)]
pub(crate) struct HoldRecord {
    info: Arc<RecipeInfo>,
    token: i64,
    span: Span,
}

impl HoldRecord {
    /// Reports that a hold begins, in a span whose parent is the caller's.
    pub(crate) fn begin(
        info: Arc<RecipeInfo>,
        caller: &Span,
        token: FencingToken,
        waited: Duration,
    ) -> HoldRecord {
        meter::count(ACQUIRED, Some(&info), None);
        meter::change(HOLDING, &info, 1.0);
        meter::record(WAITED, Some(&info), waited);
        let RecipeInfo {
            recipe, name, path, ..
        } = &*info;
        let token = token.get();
        let span = tracing::debug_span!(
            target: TARGET, parent: caller.id(), "hold", recipe, %name, %path, token
        );
        span.in_scope(|| match info.leads() {
            true => tracing::info!(target: TARGET, %path, token, ?waited, "leading"),
            false => tracing::debug!(target: TARGET, %path, token, ?waited, "acquired"),
        });
        HoldRecord { info, token, span }
    }

    /// Reports that the hold continues as one of another recipe: a writer becomes a reader.
    pub(crate) fn replaced(&self, recipe: &'static str, held: Duration) -> HoldRecord {
        self.released(held, false);
        let RecipeInfo {
            name, path, owner, ..
        } = (*self.info).clone();
        let info = RecipeInfo::new(recipe, name, path, owner);
        let token = FencingToken::from(self.token);
        HoldRecord::begin(Arc::new(info), &self.span, token, Duration::ZERO)
    }

    /// Reports that the hold of this znode was lost after it was held for this time.
    ///
    /// The own close of the session is no loss.
    pub(crate) fn lost(&self, znode: &str, reason: LossReason, held: Duration) {
        if reason.is_own_close() {
            return self.released(held, true);
        }
        self.count_end(held);
        let RecipeInfo {
            recipe, name, path, ..
        } = &*self.info;
        let (owner, token, znode) = (&self.info.owner, self.token, last_segment(znode));
        // A span of level debug may be off, so the event has its fields, too.
        self.span.in_scope(|| {
            tracing::warn!(
                target: TARGET, recipe, %name, %path, znode, %owner, token, ?held, %reason, "lost"
            );
        });
        let label = ("reason", reason_of(reason));
        meter::count(LOST, Some(&self.info), Some(label));
    }

    /// Reports that the hold was released after it was held for this time, perhaps by the close of
    /// its session.
    pub(crate) fn released(&self, held: Duration, by_close: bool) {
        self.count_end(held);
        let (path, token) = (&self.info.path, self.token);
        self.span.in_scope(|| match (self.info.leads(), by_close) {
            (true, true) => {
                tracing::info!(target: TARGET, %path, token, ?held, "resigned by close")
            }
            (true, false) => tracing::info!(target: TARGET, %path, token, ?held, "resigned"),
            (false, true) => tracing::debug!(target: TARGET, %path, token, ?held, "ended by close"),
            (false, false) => tracing::debug!(target: TARGET, %path, token, ?held, "released"),
        });
        meter::count(RELEASED, Some(&self.info), None);
    }

    /// Warns that the contender waits for this hold in the task that has acquired it.
    pub(crate) fn warn_of_own_wait(&self, contender: &str, holder: &str) {
        let path = &self.info.path;
        tracing::warn!(target: TARGET, %path, contender, holder, "waits for itself");
    }

    fn count_end(&self, held: Duration) {
        meter::change(HOLDING, &self.info, -1.0);
        meter::record(HELD, Some(&self.info), held);
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
