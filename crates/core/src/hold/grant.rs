//! A grant of a recipe to this process, from its begin to its end.
//!
//! | type | what it is |
//! |---|---|
//! | [`Hold`](crate::Hold), with `Held` | the public owner: it alone releases the grant |
//! | [`HoldView`](crate::HoldView) | the public view |
//! | [`Grant`] | the state of the hold. The owner, the views and the session share it |
//! | [`ZnodeOwner`](crate::hold::own_znode::ZnodeOwner) | the owner of the znode, also before a grant. A drop deletes the znode |
//! | `HoldRecord` | reports the begin and the end of the hold to events and metrics |
//!
//! A grant is held until its first end: its owner ends it, or it is lost. No later end counts.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::events::hold::{HoldRecord, HoldStart};
use crate::hold::own_znode::Znode;
use crate::hold_state::{Ended, FencingToken, HoldState, LossReason};
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::LiveSession;
use crate::rule::Rule;
use crate::sync::{Mutex, lock};

/// The state of a hold. Its owner, its views and its session share it.
pub(crate) struct Grant {
    pub(crate) znode: Znode,
    pub(crate) token: FencingToken,
    pub(crate) acquired_at: std::time::Instant,
    /// The number of lapses of the session's lease at the grant.
    pub(crate) epoch: LeaseEpoch,
    /// When the time limit passes, by the ensemble's clock.
    pub(crate) deadline: Option<Duration>,
    /// The rule of the queue; `None` if the recipe has no queue.
    pub(crate) rule: Option<Arc<dyn Rule>>,
    /// The znode that may have replaced this grant's. It is lost with the grant.
    pub(crate) replacement: OnceLock<Znode>,
    /// False if the session sets a loss watch at its next probe.
    ///
    /// Most holds are released before a loss watch is worth a request.
    pub(crate) is_watched: AtomicBool,
    /// The task that has acquired it. `None` outside of any task of tokio.
    task: Option<tokio::task::Id>,
    progress: Mutex<Progress>,
    changed: Notify,
}

/// What has happened to a grant.
struct Progress {
    /// The first end, and when it was noticed.
    end: Option<(Ended, Instant)>,
    /// True once the owner has released or dropped the hold.
    is_given_up: bool,
    is_suspended: bool,
    /// `None` once the end was reported. The views then keep no span open.
    record: Option<Arc<HoldRecord>>,
}

impl Grant {
    /// A grant that begins now, after this number of lapses. It has no time limit and no rule.
    pub(crate) fn new(
        znode: Znode,
        token: FencingToken,
        epoch: LeaseEpoch,
        record: impl FnOnce(HoldStart) -> Option<HoldRecord>,
    ) -> Grant {
        let start = HoldStart {
            token,
            now: znode.live().now(),
        };
        let progress = Progress {
            end: None,
            is_given_up: false,
            is_suspended: false,
            record: record(start).map(Arc::new),
        };
        Grant {
            znode,
            token,
            acquired_at: std::time::Instant::now(),
            epoch,
            deadline: None,
            rule: None,
            replacement: OnceLock::new(),
            is_watched: AtomicBool::new(false),
            task: tokio::task::try_id(),
            progress: Mutex::new(progress),
            changed: Notify::new(),
        }
    }

    /// Sets the time limit. `None` is no limit.
    pub(crate) fn limit(&mut self, limit: Option<Duration>) {
        self.deadline = limit.and_then(|limit| self.live().now().checked_add(limit));
    }

    pub(crate) fn live(&self) -> &Arc<LiveSession> {
        self.znode.live()
    }

    /// The state now. A loss that only the clock knows is noticed by this call.
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
        match self.live().hold_state(self.epoch) {
            HoldState::Held | HoldState::Suspended if self.time_is_up() => {
                HoldState::Lost(LossReason::TimeLimit)
            }
            state => state,
        }
    }

    pub(crate) fn time_is_up(&self) -> bool {
        self.deadline.is_some_and(|at| at <= self.live().now())
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

    /// How the grant had ended, if its owner has released or dropped the hold.
    pub(crate) fn given_up(&self) -> Option<Ended> {
        let progress = lock(&self.progress);
        let end = progress.end.filter(|_| progress.is_given_up);
        end.map(|(ended, _)| ended)
    }

    /// How long the owner has kept the hold since its loss was noticed.
    pub(crate) fn kept_after_loss(&self) -> Option<Duration> {
        let ended = self.ended()?;
        let progress = lock(&self.progress);
        let (_, noticed) = progress.end.filter(|_| !progress.is_given_up)?;
        (ended != Ended::Released).then(|| noticed.elapsed())
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
        let Some(record) = lock(&self.progress).record.take() else {
            return;
        };
        match ended {
            Ended::Released => record.released(self.live().now()),
            Ended::Lost(reason) => record.lost(self.znode.path(), reason, self.lost_at(reason)),
        }
    }

    /// Reports that a hold of another recipe replaces this one, and begins the record of that hold.
    pub(crate) fn report_replaced(
        &self,
        recipe: &'static str,
        start: HoldStart,
    ) -> Option<HoldRecord> {
        let record = lock(&self.progress).record.take()?;
        record.released(self.live().now());
        Some(record.replaced(recipe, start))
    }

    /// Warns if the task that runs now has acquired this grant, and keeps it: it waits for itself.
    ///
    /// No recipe is reentrant, so such a task waits for ever. The warning comes once for each hold.
    pub(crate) fn warn_of_own_wait(&self, contender: &str) {
        let progress = lock(&self.progress);
        let is_kept = progress.end.is_none() && self.task == tokio::task::try_id();
        let record = progress.record.clone().filter(|_| is_kept);
        drop(progress);
        if let Some(record) = record {
            record.warn_of_own_wait(contender, self.znode.path());
        }
    }

    /// Reports to the events whether the server answers, if that has changed.
    pub(crate) fn report_suspended(&self, is_suspended: bool) {
        let mut progress = lock(&self.progress);
        let was = std::mem::replace(&mut progress.is_suspended, is_suspended);
        let is_news = was != is_suspended && progress.end.is_none();
        let record = progress.record.clone().filter(|_| is_news);
        drop(progress);
        if let Some(record) = record {
            record.suspended(is_suspended);
        }
    }

    /// When a grant that is lost for this reason was lost, by the ensemble's clock.
    fn lost_at(&self, reason: LossReason) -> Duration {
        let now = self.live().now();
        match reason {
            LossReason::LeaseElapsed => self.live().lapsed_at().min(now),
            LossReason::TimeLimit => self.deadline.unwrap_or(now).min(now),
            _ => now,
        }
    }

    /// The time until the lease or the time limit ends the hold. Zero if it has ended.
    pub(crate) fn remaining(&self) -> Duration {
        match self.ended() {
            Some(_) => Duration::ZERO,
            None => self.remaining_until(self.deadline),
        }
    }

    /// The time until the lease ends, or until this limit.
    fn remaining_until(&self, limit: Option<Duration>) -> Duration {
        let (lease, now) = (self.live().remaining(), self.live().now());
        limit.map_or(lease, |limit| lease.min(limit.saturating_sub(now)))
    }

    /// Resolves when the grant has ended.
    pub(crate) async fn until_ended(&self) -> Ended {
        self.until(|| self.ended()).await
    }

    /// Resolves when the lease lapses or the session ends. It does not watch the znode.
    pub(crate) async fn until_lapsed_or_over(&self) -> LossReason {
        let lost = || match self.live().hold_state(self.epoch) {
            HoldState::Lost(reason) => Some(reason),
            _ => None,
        };
        self.until(lost).await
    }

    /// Resolves when a look finds something. A look follows each change of the grant or the session.
    ///
    /// The future looks each time it is polled, so no work continues after a pause of the process. It
    /// sleeps in the caller's runtime until the lease or the time limit runs out, so it does not depend
    /// on the session's runtime. It wakes now and then, because a timer may not count the time that the
    /// machine was asleep.
    pub(crate) async fn until<T>(&self, find: impl Fn() -> Option<T>) -> T {
        let live = self.live();
        let mut snapshot = live.subscribe();
        // Both waits begin before the look, so that no later change is missed.
        snapshot.mark_unchanged();
        let pause = live.probe_interval;
        loop {
            let changed = self.changed.notified();
            // A time limit that has passed needs no timer. The lease still does.
            let limit = self.deadline.filter(|limit| *limit > live.now());
            let remaining = self.remaining_until(limit);
            let mut news = pin!(async {
                tokio::select! {
                    biased;
                    () = changed => {}
                    _ = snapshot.changed() => {}
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
        if self.deadline.is_none() {
            return;
        }
        let grant = self.clone();
        self.live().in_background(async move {
            if grant.until_ended().await == Ended::Lost(LossReason::TimeLimit) {
                grant.znode.delete_in_background(());
            }
        });
    }

    /// True if the session is to set the loss watch. True once.
    pub(crate) fn takes_watch(&self) -> bool {
        !self.is_watched.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/grant.rs"]
mod tests;
