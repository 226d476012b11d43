//! The state of a grant: the lease of its session, the fate of its znode, and the time limit.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::events::hold::Record;
use crate::hold_state::{FirstLoss, HoldState, LossReason};
use crate::live::lease::Lapses;
use crate::live::live_session::LiveSession;
use crate::sync::{Mutex, lock};

/// What has happened to a grant's znode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    #[default]
    Intact,
    /// The znode is deleted. It is not known yet if the session has ended.
    Gone,
    /// The grant is lost for this reason. A znode that exists is being deleted.
    Lost(LossReason),
}

impl Fate {
    pub(crate) fn loss(self) -> Option<LossReason> {
        match self {
            Fate::Intact | Fate::Gone => None,
            Fate::Lost(reason) => Some(reason),
        }
    }

    /// True if the znode is deleted, and not by this process.
    pub(crate) fn is_deleted(self) -> bool {
        use LossReason::{Deleted, DeletedOrSessionOver};
        matches!(
            self,
            Fate::Gone | Fate::Lost(Deleted | DeletedOrSessionOver)
        )
    }

    fn may_follow(self, before: Fate) -> bool {
        match before {
            Fate::Intact => true,
            Fate::Gone => !matches!(self, Fate::Gone | Fate::Lost(LossReason::TimeLimit)),
            Fate::Lost(_) => false,
        }
    }
}

/// The fate of a grant's znode, which is reported to the record of its hold.
///
/// All clones share it.
#[derive(Clone, Default)]
pub(crate) struct GrantFate(Arc<SharedFate>);

#[derive(Default)]
struct SharedFate {
    fate: Mutex<Fate>,
    changed: Notify,
    /// `None` before the hold begins, and once its owner ends it.
    record: Mutex<Option<Arc<Record>>>,
}

impl GrantFate {
    /// Sets the fate, and reports a loss at this time by the ensemble's clock.
    ///
    /// Only the first fate counts. After [`Fate::Gone`], the fate that explains it counts, too.
    pub(crate) fn set_and_report(&self, fate: Fate, at: Duration) {
        if let (true, Some(reason)) = (self.set(fate), fate.loss()) {
            self.with_record(|record| record.lost(reason, at));
        }
    }

    /// Ends the grant by the time limit of its hold, at this time. False if it has ended before.
    pub(crate) fn end_by_time_limit(&self, at: Duration) -> bool {
        let now = lock(&self.0.record);
        // Under the lock, because the owner ends the hold under it.
        let Some(record) = now.clone() else {
            return false;
        };
        let is_first = self.set(Fate::Lost(LossReason::TimeLimit));
        drop(now);
        if is_first {
            record.lost(LossReason::TimeLimit, at);
        }
        is_first
    }

    /// Sets the fate. False if another one was set before.
    fn set(&self, fate: Fate) -> bool {
        let mut now = lock(&self.0.fate);
        let is_set = fate.may_follow(*now);
        if is_set {
            *now = fate;
            drop(now);
            self.0.changed.notify_waiters();
        }
        is_set
    }

    pub(crate) fn get(&self) -> Fate {
        *lock(&self.0.fate)
    }

    /// Resolves when the fate changes after this call.
    fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    /// Sets the record of the hold that has the grant now.
    pub(crate) fn set_record(&self, record: Option<Arc<Record>>) {
        *lock(&self.0.record) = record;
    }

    /// Reports to the record of the hold, if a hold has the grant.
    pub(crate) fn with_record(&self, report: impl FnOnce(&Record)) {
        // The lock is free while the record reports to the user's subscriber.
        let record = lock(&self.0.record).clone();
        if let Some(record) = record {
            report(&record);
        }
    }
}

/// The state of a grant: its session's lease, its znode's fate, and the time limit of its hold.
///
/// The value is cheap to clone.
#[derive(Clone)]
pub(crate) struct GrantState {
    pub(crate) live: Arc<LiveSession>,
    /// The number of lapses of the session's lease at the grant.
    pub(crate) lapses: Lapses,
    pub(crate) fate: GrantFate,
    /// When the time limit of the hold passes, by the ensemble's clock.
    pub(crate) deadline: Option<Duration>,
    /// The loss of the hold, once it is reported.
    pub(crate) loss: FirstLoss,
}

impl GrantState {
    /// The state. If the reason of a loss is not known yet, it is `DeletedOrSessionOver`, and stays
    /// so.
    pub(crate) fn state(&self) -> HoldState {
        let unexplained = HoldState::Lost(LossReason::DeletedOrSessionOver);
        self.with_first_reason(self.known_state().unwrap_or(unexplained))
    }

    /// The state, or `None` if the hold is lost for a reason that is not known yet.
    fn known_state(&self) -> Option<HoldState> {
        if let Some(loss) = self.loss.get() {
            return Some(HoldState::Lost(loss.reason));
        }
        let fate = self.fate.get();
        if let Some(reason) = fate.loss() {
            return Some(HoldState::Lost(reason));
        }
        match self.live.hold_state(self.lapses) {
            HoldState::Held | HoldState::Suspended if fate == Fate::Gone => None,
            HoldState::Held | HoldState::Suspended if self.time_is_up() => {
                Some(HoldState::Lost(LossReason::TimeLimit))
            }
            state => Some(state),
        }
    }

    /// This state, with the first reason of a loss. A loss is noted if it is the first.
    fn with_first_reason(&self, state: HoldState) -> HoldState {
        match state {
            HoldState::Lost(reason) => {
                HoldState::Lost(self.loss.first(reason, self.lost_at(reason)).reason)
            }
            state => state,
        }
    }

    /// Reports to a record that the hold is lost, if it is lost for a known reason.
    pub(crate) fn report_loss_to(&self, record: &Record) {
        if let Some(HoldState::Lost(reason)) = self.known_state() {
            record.lost(reason, self.lost_at(reason));
        }
    }

    /// Notes the loss of a hold, which is lost for this reason if no other is known.
    pub(crate) fn lost_for(&self, reason: LossReason) -> LossReason {
        let reason = match self.known_state() {
            Some(HoldState::Lost(known)) => known,
            _ => reason,
        };
        self.loss.first(reason, self.lost_at(reason)).reason
    }

    /// The time until the lease or the time limit ends the hold.
    pub(crate) fn remaining(&self) -> Duration {
        remaining(&self.live, self.deadline)
    }

    /// When a hold that is lost for this reason was lost, by the ensemble's clock.
    fn lost_at(&self, reason: LossReason) -> Duration {
        let now = self.live.now();
        match reason {
            LossReason::LeaseElapsed => self.live.lapsed_at().min(now),
            LossReason::TimeLimit => self.deadline.unwrap_or(now).min(now),
            _ => now,
        }
    }

    pub(crate) fn time_is_up(&self) -> bool {
        self.deadline.is_some_and(|at| at <= self.live.now())
    }

    /// Resolves when the time limit passes, unless the lease has lapsed before.
    pub(crate) async fn until_time_is_up(&self) {
        self.until(|now| now.time_is_up().then_some(())).await;
    }

    /// True if the hold is not lost. A loss without a known reason is a loss.
    pub(crate) fn is_held(&self) -> bool {
        matches!(
            self.known_state(),
            Some(HoldState::Held | HoldState::Suspended)
        )
    }

    /// Resolves with the first state that is not `last`, once the reason of a loss is known.
    pub(crate) async fn changed_from(&self, last: Option<HoldState>) -> HoldState {
        let is_new = |state: &HoldState| Some(*state) != last;
        self.until(|now| {
            now.known_state()
                .filter(is_new)
                .map(|state| now.with_first_reason(state))
        })
        .await
    }

    /// Resolves when the grant is lost, and the reason is known.
    pub(crate) async fn lost(&self) -> LossReason {
        self.until(
            |now| match now.known_state().map(|state| now.with_first_reason(state)) {
                Some(HoldState::Lost(reason)) => Some(reason),
                _ => None,
            },
        )
        .await
    }

    /// Resolves when the grant is lost. The reason may not be known yet.
    pub(crate) async fn not_held(&self) {
        self.until(|now| (!now.is_held()).then_some(())).await;
    }

    /// Resolves at once, unless the grant is lost for a reason that is not known yet.
    pub(crate) async fn explained(&self) {
        if self.fate.get() == Fate::Gone {
            self.until(|now| now.known_state().map(drop)).await;
        }
    }

    /// Resolves when a look at the state finds something.
    async fn until<T>(&self, find: impl Fn(&GrantState) -> Option<T>) -> T {
        let changed = || self.fate.changed();
        until(&self.live, changed, self.deadline, || find(self)).await
    }
}

/// Resolves when the lease lapses or the session ends, after a grant at this number of lapses.
///
/// It does not watch the znode.
pub(crate) async fn until_lapsed_or_over(live: &LiveSession, lapses: Lapses) -> LossReason {
    let lost = || match live.hold_state(lapses) {
        HoldState::Lost(reason) => Some(reason),
        _ => None,
    };
    until(live, std::future::pending::<()>, None, lost).await
}

/// The time until the lease or the time limit ends a hold.
fn remaining(live: &LiveSession, limit: Option<Duration>) -> Duration {
    let lease = live.remaining();
    limit.map_or(lease, |limit| lease.min(limit.saturating_sub(live.now())))
}

/// Resolves when a look finds something. A look follows each change of the session.
///
/// Each call of `changed` returns a future that resolves at another reason to look.
///
/// The future looks each time it is polled, so no work continues after a pause of the process. It
/// sleeps in the caller's runtime until the lease or the time limit runs out, so it does not depend
/// on the session's runtime. It wakes now and then, because a timer may not count the time that the
/// machine was asleep.
async fn until<T, F: Future<Output = ()>>(
    live: &LiveSession,
    changed: impl Fn() -> F,
    limit: Option<Duration>,
    find: impl Fn() -> Option<T>,
) -> T {
    let mut condition = live.subscribe();
    // Both waits begin before the look, so that no later change is missed.
    condition.mark_unchanged();
    let pause = live.probe_interval;
    loop {
        let changed = changed();
        // A time limit that has passed needs no timer. The lease still does.
        let limit = limit.filter(|limit| *limit > live.now());
        let remaining = remaining(live, limit);
        let mut news = pin!(async {
            tokio::select! {
                biased;
                () = changed => {}
                _ = condition.changed() => {}
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

#[cfg(test)]
#[path = "../../tests/unit/grant_state.rs"]
mod tests;
