//! A grant of a recipe to this process, from its begin to its first end.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

use crate::error::Error;
use crate::events::hold::HoldRecord;
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::{ContenderName, Znode};
use crate::hold_state::{Ended, FencingToken, HoldState, LossReason};
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::LiveSession;
use crate::rule::Rule;
use crate::server::error::ServerError;
use crate::sync::{Mutex, lock};

/// The state of a hold. Its owner, its views and its session share it.
///
/// A grant is held until its first end: its owner ends it, or it is lost. No later end counts.
pub(crate) struct Grant {
    pub(crate) znode: Znode,
    pub(crate) terms: Terms,
    pub(crate) acquired_at: std::time::Instant,
    /// The same moment, by the ensemble's clock.
    began: Duration,
    /// The znode that may have replaced this grant's. It is lost with the grant.
    pub(crate) replacement: OnceLock<ContenderName>,
    /// The views of the hold, its owner's own included.
    pub(crate) views: AtomicUsize,
    /// False if the session sets a loss watch at its next probe.
    ///
    /// Most holds are released before a loss watch is worth a request.
    is_watched: AtomicBool,
    /// The task that has acquired it. `None` outside of any task of tokio.
    task: Option<tokio::task::Id>,
    progress: Mutex<Progress>,
    changed: Notify,
}

/// The terms of a grant. A replacement of its znode does not change them.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) token: FencingToken,
    /// The number of lapses of the session's lease when it allowed the grant.
    pub(crate) epoch: LeaseEpoch,
    /// When the time limit passes, by the ensemble's clock. `None` is no limit.
    pub(crate) deadline: Option<Duration>,
    /// The rule of the queue; `None` if the recipe has no queue.
    pub(crate) rule: Option<Arc<dyn Rule>>,
}

/// What has happened to a grant.
struct Progress {
    /// The first end, and when it was noticed.
    end: Option<(Ended, Instant)>,
    /// True once the owner has released or dropped the hold.
    is_given_up: bool,
    /// True once a warning has said that a contender of the same task waits for the hold.
    has_warned_of_own_wait: bool,
    /// `None` once the end was reported. The views then keep no span open.
    record: Option<HoldRecord>,
}

impl Grant {
    /// A grant that begins now.
    pub(crate) fn new(znode: Znode, terms: Terms, record: HoldRecord) -> Grant {
        let progress = Progress {
            end: None,
            is_given_up: false,
            has_warned_of_own_wait: false,
            record: Some(record),
        };
        Grant {
            began: znode.live().now(),
            znode,
            terms,
            acquired_at: std::time::Instant::now(),
            replacement: OnceLock::new(),
            views: AtomicUsize::new(0),
            is_watched: AtomicBool::new(false),
            task: tokio::task::try_id(),
            progress: Mutex::new(progress),
            changed: Notify::new(),
        }
    }

    pub(crate) fn live(&self) -> &Arc<LiveSession> {
        self.znode.live()
    }

    /// The state now. A loss that only the clock or the session knows is noticed by this call.
    pub(crate) fn state(&self) -> HoldState {
        if let Some((ended, _)) = lock(&self.progress).end {
            return ended.into();
        }
        match self.state_by_clock() {
            HoldState::Lost(reason) => self.end(Ended::Lost(reason)).into(),
            state => state,
        }
    }

    /// How the grant has ended, or `None` if it is held.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.state().ended()
    }

    /// The state by the lease, the session and the time limit.
    fn state_by_clock(&self) -> HoldState {
        let state = self.live().hold_state(self.terms.epoch);
        let has_passed = |limit| limit <= self.live().now();
        match state.ended() {
            None if self.terms.deadline.is_some_and(has_passed) => {
                HoldState::Lost(LossReason::TimeLimit)
            }
            _ => state,
        }
    }

    /// Ends the grant as lost, and returns the end that counts.
    ///
    /// An earlier end counts, and so does an earlier loss that only the clock knows.
    pub(crate) fn lose(&self, reason: LossReason) -> Ended {
        let reason = match self.state_by_clock() {
            HoldState::Lost(earlier) => earlier,
            _ => reason,
        };
        self.end(Ended::Lost(reason))
    }

    /// Ends the grant for its owner, and returns the end that counts.
    pub(crate) fn give_up(&self) -> Ended {
        let ended = self.ended().unwrap_or(Ended::Released);
        lock(&self.progress).is_given_up = true;
        self.end(ended)
    }

    /// Ends the grant, unless it has ended before, and returns the end that counts.
    fn end(&self, ended: Ended) -> Ended {
        let mut progress = lock(&self.progress);
        if let Some((first, _)) = progress.end {
            return first;
        }
        if let Ended::Lost(reason) = ended {
            // A thread that sees the end may drop the hold at once. The drop must not delete the
            // next holder's znode, which may have the same path.
            self.znode.note_lost(reason);
        }
        progress.end = Some((ended, Instant::now()));
        drop(progress);
        self.changed.notify_waiters();
        if let Ended::Lost(_) = ended {
            self.znode.pass_turn();
            self.report(ended);
        }
        ended
    }

    /// Reports the end to the events, unless an end was reported before.
    pub(crate) fn report(&self, ended: Ended) {
        let Some(record) = self.take_record() else {
            return;
        };
        match ended {
            Ended::Released => record.released(self.held_for(), false),
            Ended::Lost(reason) => {
                let held = self.lost_at(reason).saturating_sub(self.began);
                record.lost(self.znode.path(), reason, held);
            }
        }
    }

    /// The record of the hold, unless its end is reported. The caller reports the end.
    pub(crate) fn take_record(&self) -> Option<HoldRecord> {
        lock(&self.progress).record.take()
    }

    /// Keeps a turn among the clones of a queue until the deletion of the znode is sent, or until the
    /// hold is lost.
    pub(crate) fn keep_turn(&self, turn: OwnedSemaphorePermit) {
        self.znode.keep_turn(turn);
        // A loss before this has found no turn to pass on.
        if lock(&self.progress).end.is_some() {
            self.znode.pass_turn();
        }
    }

    /// How long the hold has lasted until now, by the ensemble's clock.
    pub(crate) fn held_for(&self) -> Duration {
        self.live().now().saturating_sub(self.began)
    }

    /// Warns if the task that runs now has acquired this grant, and keeps it: it waits for itself.
    ///
    /// No recipe is reentrant, so such a task waits for ever. The warning comes once for each hold.
    pub(crate) fn warn_of_own_wait(&self, contender: &str) {
        let mut progress = lock(&self.progress);
        let is_kept = progress.end.is_none() && self.task == tokio::task::try_id();
        let is_news = is_kept && !std::mem::replace(&mut progress.has_warned_of_own_wait, is_kept);
        let record = progress.record.as_ref().filter(|_| is_news).cloned();
        drop(progress);
        if let Some(record) = record {
            record.warn_of_own_wait(contender, self.znode.path());
        }
    }

    /// When a grant that is lost for this reason was lost, by the ensemble's clock.
    fn lost_at(&self, reason: LossReason) -> Duration {
        let now = self.live().now();
        match reason {
            LossReason::LeaseElapsed => self.live().lapsed_at().min(now),
            LossReason::TimeLimit => self.terms.deadline.unwrap_or(now).min(now),
            _ => now,
        }
    }

    /// The time until the lease ends, or until this limit.
    pub(crate) fn remaining_until(&self, limit: Option<Duration>) -> Duration {
        let (lease, now) = (self.live().remaining(), self.live().now());
        limit.map_or(lease, |limit| lease.min(limit.saturating_sub(now)))
    }

    /// How long the owner has kept the hold since its loss was noticed.
    pub(crate) fn kept_after_loss(&self) -> Option<Duration> {
        self.ended()?;
        match *lock(&self.progress) {
            Progress {
                end: Some((Ended::Lost(_), noticed)),
                is_given_up: false,
                ..
            } => Some(noticed.elapsed()),
            _ => None,
        }
    }

    /// Resolves when the grant has ended.
    pub(crate) async fn until_ended(&self) -> Ended {
        self.until(|| self.ended()).await
    }

    /// Runs work on the znode, until the lease lapses or the session ends. It does not watch the znode.
    ///
    /// # Errors
    ///
    /// Those of the work, [`Error::Lost`] if the lease lapses first, and [`Error::SessionOver`].
    pub(crate) async fn within_lease<T>(
        &self,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        let live = self.live();
        let lapsed_or_over = || match live.hold_state(self.terms.epoch) {
            HoldState::Lost(reason) => Some(reason),
            _ => None,
        };
        tokio::select! {
            biased;
            done = work => {
                live.note_end(&done);
                done
            }
            reason = self.until(lapsed_or_over) => Err(self.lost_by(reason)),
        }
    }

    /// The error of a release or a replacement whose hold is lost meanwhile.
    pub(crate) fn lost_by(&self, reason: LossReason) -> Error {
        let (path, session) = (self.znode.path(), self.live().id);
        match reason {
            LossReason::Session(end) => Error::at(path, session, ServerError::SessionOver(end)),
            reason => Error::lost(path, session, reason),
        }
    }

    /// Resolves when a look finds something. A look follows each change of the grant or the session.
    ///
    /// The future looks each time it is polled, so no work continues after a pause of the process. It
    /// sleeps in the caller's runtime until the lease or the time limit runs out, so it does not depend
    /// on the session's runtime. It wakes now and then, because a timer may not count the time that the
    /// machine was asleep.
    pub(crate) async fn until<T>(&self, find: impl Fn() -> Option<T>) -> T {
        let live = self.live();
        let mut session = live.subscribe();
        // Both waits begin before the look, so that no later change is missed.
        session.mark_unchanged();
        let pause = live.probe_interval;
        loop {
            let changed = self.changed.notified();
            // A time limit that has passed needs no timer. The lease still does.
            let limit = self.terms.deadline.filter(|limit| *limit > live.now());
            let remaining = self.remaining_until(limit);
            let mut news = pin!(async {
                tokio::select! {
                    biased;
                    () = changed => {}
                    _ = session.changed() => {}
                    () = tokio::time::sleep(remaining.min(pause)), if !remaining.is_zero() => {}
                }
            });
            let found = poll_fn(|context| match find() {
                Some(found) => Poll::Ready(Some(found)),
                None => news.as_mut().poll(context).map(|()| None),
            });
            if let Some(found) = found.await {
                return found;
            }
        }
    }

    /// Deletes the znode in the background once the time limit of the hold has passed.
    ///
    /// The task does nothing if the hold has no time limit, or ends before. The hold itself reports
    /// the loss by the clock, even if this task does not run.
    pub(crate) fn enforce_time_limit(self: &Arc<Self>) {
        if self.terms.deadline.is_none() {
            return;
        }
        let grant = self.clone();
        self.live().in_background(async move {
            if grant.until_ended().await == Ended::Lost(LossReason::TimeLimit) {
                grant.znode.delete_in_background(());
            }
        });
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Ends the grant once its loss watch reports that the znode is lost.
    ///
    /// If another client has written to the znode, a task of the session deletes it. A lost hold must
    /// not keep other contenders waiting. A grant whose own release is reported has ended before.
    pub(crate) fn watch_by(self: &Arc<Self>, mut loss_watch: LossWatch) {
        self.is_watched.store(true, Ordering::Relaxed);
        // Other contenders have probably come by now, and wait. A hold without a wait has no loss
        // watch at first: if it is brief, a plain deletion costs less.
        self.znode.mark_on_release();
        let grant = self.clone();
        self.live().in_background(async move {
            let reason = loss_watch.lost().await;
            if grant.lose(reason) == Ended::Lost(LossReason::Written) {
                grant.znode.delete_in_background(());
            }
        });
    }
}

#[cfg(test)]
#[path = "../../tests/unit/grant.rs"]
mod tests;
