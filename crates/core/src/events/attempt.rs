//! The events of an attempt: `waiting`, `acquired`, `failed`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::FutureExt;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::error::Error;
use crate::events::hold::HoldRecord;
use crate::events::keys::{ATTEMPTS, FAILED, HANDOFF, WAITING};
use crate::events::meter;
use crate::events::{RecipeInfo, TARGET};
use crate::hold_state::FencingToken;
use crate::server::error::SessionEnd;
use crate::sync::{Mutex, lock};

/// The record of one attempt, from the call to the hold.
///
/// If it is dropped before it has ended, the attempt was given up.
pub(crate) struct AttemptRecord {
    info: Arc<RecipeInfo>,
    began: Instant,
    /// The caller's span, which is the parent of the hold's.
    caller: Span,
    span: Span,
    /// The contender that the attempt was last reported to wait behind, and the attempt's position.
    waits: Mutex<Option<(String, usize)>>,
    /// When the last event came that could be its turn.
    woken_at: Mutex<Option<Instant>>,
    has_ended: AtomicBool,
}

impl AttemptRecord {
    pub(crate) fn begin(info: &Arc<RecipeInfo>) -> AttemptRecord {
        meter::count(ATTEMPTS, Some(info), None);
        meter::change(WAITING, info, 1.0);
        let RecipeInfo {
            recipe, name, path, ..
        } = &**info;
        AttemptRecord {
            info: info.clone(),
            began: Instant::now(),
            caller: Span::current(),
            span: tracing::debug_span!(target: TARGET, "attempt", recipe, %name, %path),
            waits: Mutex::default(),
            woken_at: Mutex::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Runs the work of the attempt in its span, and reports the error if it fails.
    ///
    /// No `async fn`: see [`sync`](crate::sync).
    pub(crate) fn report<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> impl Future<Output = Result<T, Error>> {
        let work = work.instrument(self.span.clone());
        work.inspect(move |result| {
            if let Err(error) = result {
                let path = &self.info.path;
                tracing::debug!(target: TARGET, parent: &self.span, %path, %error, "failed");
                self.note_failure(kind_of(error));
            }
        })
    }

    /// The same for a try, which acquires nothing if others are before it.
    pub(crate) fn report_try<T>(
        &self,
        work: impl Future<Output = Result<Option<T>, Error>>,
    ) -> impl Future<Output = Result<Option<T>, Error>> {
        self.report(work).inspect(|result| {
            if let Ok(None) = result {
                self.note_failure("taken");
            }
        })
    }

    /// Reports whom the attempt waits behind, unless that was reported before.
    ///
    /// `position` is the number of contenders before this one.
    pub(crate) fn waits(&self, behind: &str, position: usize) {
        let mut reported = lock(&self.waits);
        let is_known = |(before, at): &(String, usize)| before == behind && *at == position;
        if reported.as_ref().is_some_and(is_known) {
            return;
        }
        *reported = Some((behind.to_owned(), position));
        drop(reported);
        let path = &self.info.path;
        tracing::debug!(target: TARGET, parent: &self.span, %path, behind, position, "waiting");
    }

    /// Notes that an event has come, after which the attempt may hold.
    pub(crate) fn woken(&self) {
        *lock(&self.woken_at) = Some(Instant::now());
    }

    /// Reports that the attempt left the queue to others, and enters it again.
    pub(crate) fn stepped_back(&self) {
        *lock(&self.waits) = None;
        *lock(&self.woken_at) = None;
        let path = &self.info.path;
        tracing::debug!(target: TARGET, parent: &self.span, %path, "stepped back");
    }

    /// Reports that the attempt has acquired, and begins the record of the hold.
    pub(crate) fn acquired(&self, token: FencingToken) -> HoldRecord {
        self.has_ended.store(true, Ordering::Relaxed);
        let waited = self.began.elapsed();
        if let Some(woken_at) = *lock(&self.woken_at) {
            meter::record(HANDOFF, Some(&self.info), woken_at.elapsed());
        }
        HoldRecord::begin(self.info.clone(), &self.caller, token, waited)
    }

    fn note_failure(&self, kind: &'static str) {
        self.has_ended.store(true, Ordering::Relaxed);
        meter::count(FAILED, Some(&self.info), Some(("kind", kind)));
    }
}

impl Drop for AttemptRecord {
    fn drop(&mut self) {
        if !self.has_ended.load(Ordering::Relaxed) {
            let path = &self.info.path;
            tracing::debug!(target: TARGET, parent: &self.span, %path, "given up");
            self.note_failure("given_up");
        }
        meter::change(WAITING, &self.info, -1.0);
    }
}

/// The error in a word, as a label of metrics.
fn kind_of(error: &Error) -> &'static str {
    match error {
        Error::InvalidInput(_) => "invalid_input",
        Error::Connect { .. } => "connect",
        Error::MissingChroot { .. } => "missing_chroot",
        Error::Refused { .. } => "refused",
        Error::OtherRecipe { .. } => "other_recipe",
        Error::DeadlineElapsed { .. } => "deadline_elapsed",
        Error::ContenderDeleted { .. } => "contender_deleted",
        Error::ContenderWritten { .. } => "contender_written",
        Error::NoLease { .. } => "no_lease",
        Error::SessionOver {
            reason: SessionEnd::Expired,
            ..
        } => "session_expired",
        Error::SessionOver { .. } | Error::NoSession { .. } => "session_over",
        Error::Disconnected { .. } => "disconnected",
        Error::Lost { .. } => "lost",
        Error::Released { .. } => "released",
        Error::OutcomeUnknown { .. } => "outcome_unknown",
    }
}
