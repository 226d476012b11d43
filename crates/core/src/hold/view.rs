//! The view of a hold: its state, for tasks that do not own the hold.
//!
//! The state comes from the lease of the session, the fate of the znode, and the time limit.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, SetOnce};

use crate::error::Error;
use crate::events::hold::{FirstLoss, Record};
use crate::hold::own_znode::OwnZnode;
use crate::hold_state::{Ended, FencingToken, HoldState, LossReason};
use crate::live::live_session::LiveSession;
use crate::server::ensemble::SessionId;
use crate::sync::lock;

/// The state of a [`Hold`](crate::Hold), for tasks that do not own the hold.
///
/// A view is cheap to clone, and [`Send`]. It does not keep the hold: one place owns the hold, and
/// the tasks that work under it take views. A view has no `lost`: its task must stop when the hold
/// is released, too. So it awaits [`ended`](Self::ended).
///
/// # Cancel safety
///
/// Each future of a view may be dropped, and its method called again.
///
/// ```
/// use zookeeper_recipes_core::{Error, Recipe};
///
/// async fn import(recipe: &dyn Recipe, files: Vec<String>) -> Result<(), Error> {
///     let hold = recipe.acquire().await?;
///     let view = hold.view();
///     let work = tokio::task::spawn_blocking(move || {
///         for file in files.iter().take_while(|_| view.is_held()) {
///             println!("{file}, with token {}", view.fencing_token());
///         }
///     });
///     work.await.expect("the work does not panic");
///     hold.release().await
/// }
/// ```
#[derive(Clone)]
pub struct HoldView {
    pub(crate) grant_state: GrantState,
    pub(crate) znode: OwnZnode,
    token: FencingToken,
    acquired_at: Instant,
    pub(crate) shared: Arc<SharedHold>,
}

/// What a hold shares with its views.
#[derive(Default)]
pub(crate) struct SharedHold {
    /// How the hold ended, once the owner has released or dropped the hold.
    pub(crate) ended: SetOnce<Ended>,
    /// The guarded writes of this hold that have no answer.
    pub(crate) unanswered: UnansweredWrites,
}

impl HoldView {
    pub(crate) fn new(grant_state: GrantState, znode: OwnZnode, token: FencingToken) -> HoldView {
        HoldView {
            grant_state,
            znode,
            token,
            acquired_at: Instant::now(),
            shared: Arc::default(),
        }
    }

    /// The path of the holder's znode. [`Recipe::path`](crate::Recipe::path) is its directory.
    pub fn node_path(&self) -> &str {
        self.znode.path()
    }

    /// The token by which a store distinguishes this holder from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// The ZooKeeper session that the hold belongs to.
    ///
    /// The hold ends with it.
    pub fn session_id(&self) -> SessionId {
        self.grant_state.live.id
    }

    /// When the hold was acquired.
    pub fn acquired_at(&self) -> Instant {
        self.acquired_at
    }

    /// The state now, by the clock. The call sends nothing.
    ///
    /// The reason of a loss stays the same. If the holder's znode was deleted a moment ago, it is
    /// [`DeletedOrSessionOver`](LossReason::DeletedOrSessionOver), because no server has said yet
    /// how. [`ended`](Self::ended) waits for the answer.
    pub fn state(&self) -> HoldState {
        let ended = self.owner_end().map(HoldState::from);
        ended.unwrap_or_else(|| self.grant_state.state())
    }

    /// True if the recipe is certainly still held.
    ///
    /// False if, and only if, the [`state`](Self::state) is [`Lost`](HoldState::Lost) or
    /// [`Released`](HoldState::Released). The answer is right after a pause of the process of any
    /// length, because it comes from a clock that does not stop. It does not wait for an event from
    /// the server.
    ///
    /// If somebody deletes the holder's znode by hand, the answer is
    /// [late](crate::Hold#what-it-promises).
    pub fn is_held(&self) -> bool {
        self.owner_end().is_none() && self.grant_state.is_held()
    }

    /// How long the recipe is certainly held if the server sends no further answer.
    ///
    /// It is at most the rest of the hold's [time limit](crate::QueueOptions::at_most), and zero if
    /// the hold has ended.
    pub fn remaining(&self) -> Duration {
        match self.is_held() {
            true => remaining(&self.grant_state.live, self.grant_state.deadline),
            false => Duration::ZERO,
        }
    }

    /// How long the owner has kept the hold since its loss was noticed.
    ///
    /// `None` if the hold is not lost, or once the owner has released or dropped it. It is for
    /// health checks: if work continues after its hold is lost, its owner keeps the hold.
    pub fn kept_after_loss(&self) -> Option<Duration> {
        if self.owner_end().is_some() {
            return None;
        }
        let noticed = self.grant_state.loss.get();
        let noticed = noticed.map(|loss| loss.noticed.elapsed());
        (!self.is_held()).then(|| noticed.unwrap_or_default())
    }

    /// Resolves when the hold has ended: when its owner releases or drops it, or when it is lost.
    ///
    /// A loss resolves the future before another contender can hold. A task with a view has to stop
    /// after either end: nothing protects its work any more.
    ///
    /// If somebody deletes the holder's znode by hand, the future resolves
    /// [late](crate::Hold#what-it-promises), once a server has answered if the session lasts. So it
    /// may resolve up to a twentieth of the session timeout later than [`is_held`](Self::is_held)
    /// turns false.
    ///
    /// The time is measured in the runtime that polls this future. That runtime must run, and its
    /// time must be enabled. The session's runtime need not run. The future looks at the clock each
    /// time it is polled.
    ///
    /// ```
    /// # use zookeeper_recipes_core::{Ended, HoldView};
    /// # async fn work() -> Result<(), Ended> { Ok(()) }
    /// # async fn example(view: HoldView) -> Result<(), Ended> {
    /// tokio::select! {
    ///     done = work() => done?,
    ///     ended = view.ended() => return Err(ended),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ended(&self) -> Ended {
        tokio::select! {
            biased;
            ended = self.ended_by_owner() => ended,
            reason = self.grant_state.lost() => Ended::Lost(reason),
        }
    }

    /// Resolves as soon as the hold has ended. The reason may not be known yet.
    ///
    /// As [`ended`](Self::ended), but does not wait for the answer that says why the holder's znode
    /// was deleted.
    ///
    /// ```
    /// # use zookeeper_recipes_core::{Ended, HoldView};
    /// # async fn work() {}
    /// # async fn example(view: HoldView) -> Result<(), Ended> {
    /// tokio::select! {
    ///     biased;
    ///     () = view.not_held() => return Err(view.ended().await),
    ///     () = work() => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn not_held(&self) {
        tokio::select! {
            biased;
            _ = self.ended_by_owner() => {}
            () = self.grant_state.not_held() => {}
        }
    }

    /// The state now, and then each change.
    ///
    /// The stream ends after [`HoldState::Released`] or [`HoldState::Lost`]. It does not keep the
    /// hold. As [`ended`](Self::ended), it waits for the reason of a loss.
    pub fn states(&self) -> impl Stream<Item = HoldState> + Send + Unpin + 'static + use<> {
        let view = self.clone();
        stream::unfold((view, None), |(view, last)| async move {
            if last.is_some_and(|last: HoldState| last.ended().is_some()) {
                return None;
            }
            let state = tokio::select! {
                biased;
                ended = view.ended_by_owner() => ended.into(),
                state = view.grant_state.changed_from(last) => state,
            };
            Some((state, (view, Some(state))))
        })
        .boxed()
    }

    /// How the hold ended, if the owner has released or dropped the hold.
    pub(crate) fn owner_end(&self) -> Option<Ended> {
        self.shared.ended.get().copied()
    }

    /// The error for work that depended on a lost hold.
    ///
    /// The reason is this one, unless an earlier one is known.
    pub(crate) fn lost_error(&self, reason: LossReason) -> Error {
        let reason = self.grant_state.lost_for(reason);
        Error::lost(self.node_path(), self.session_id(), reason)
    }

    /// The error for work that depended on a hold that has ended.
    pub(crate) fn ended_error(&self, ended: Ended) -> Error {
        match ended {
            Ended::Lost(reason) => self.lost_error(reason),
            Ended::Released => Error::Released {
                path: self.node_path().to_owned(),
                session: self.session_id(),
            },
        }
    }

    pub(crate) async fn ended_by_owner(&self) -> Ended {
        *self.shared.ended.wait().await
    }
}

impl fmt::Debug for HoldView {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HoldView")
            .field("node_path", &self.node_path())
            .field("fencing_token", &self.fencing_token())
            .field("session_id", &self.session_id())
            .field("state", &self.state())
            .finish()
    }
}

/// What has happened to a grant's znode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    #[default]
    Intact,
    /// The znode is deleted. It is not known yet if the session has ended.
    Gone,
    /// Another client has deleted the znode.
    Deleted,
    /// The znode is deleted, and no server has said in time if the session has ended.
    Unexplained,
    /// Another client has written to the znode, so the znode is being deleted.
    Written,
    /// The lease has lapsed, so the znode is being deleted.
    Lapsed,
    /// The time limit of the hold has passed, so the znode is being deleted.
    TimeIsUp,
}

impl Fate {
    pub(crate) fn loss(self) -> Option<LossReason> {
        match self {
            Fate::Intact | Fate::Gone => None,
            Fate::Deleted => Some(LossReason::Deleted),
            Fate::Unexplained => Some(LossReason::DeletedOrSessionOver),
            Fate::Written => Some(LossReason::Written),
            Fate::Lapsed => Some(LossReason::LeaseElapsed),
            Fate::TimeIsUp => Some(LossReason::TimeLimit),
        }
    }

    /// True if the znode is deleted, and not by this process.
    pub(crate) fn is_deleted(self) -> bool {
        matches!(self, Fate::Gone | Fate::Deleted | Fate::Unexplained)
    }

    fn may_follow(self, before: Fate) -> bool {
        match before {
            Fate::Intact => true,
            Fate::Gone => !matches!(self, Fate::Gone | Fate::TimeIsUp),
            _ => false,
        }
    }
}

/// The fate of a grant's znode, which is reported to the record of its hold. The clones are one.
#[derive(Clone, Default)]
pub(crate) struct GrantFate(Arc<SharedFate>);

#[derive(Default)]
struct SharedFate {
    fate: Mutex<Fate>,
    changed: Notify,
    /// `None` while no hold has the grant, and once the hold's owner ends it.
    record: Mutex<Option<Arc<Record>>>,
}

impl GrantFate {
    /// Sets the fate, and reports a loss at this time by the ensemble's clock.
    ///
    /// Only the first fate counts. After [`Fate::Gone`], the fate that explains it counts, too.
    pub(crate) fn report(&self, fate: Fate, at: Duration) {
        if let (true, Some(reason)) = (self.set(fate), fate.loss()) {
            self.with_record(|record| record.lost(reason, at));
        }
    }

    /// Notes that the time limit of the hold with this record has passed, at this time.
    ///
    /// False if that hold has ended before. The next task of the process may have its grant.
    pub(crate) fn time_is_up(&self, of: &Arc<Record>, at: Duration) -> bool {
        let record = lock(&self.0.record);
        let holds = record.as_ref().is_some_and(|now| Arc::ptr_eq(now, of));
        // Under the lock, because the owner ends the hold under it.
        let is_first = holds && self.set(Fate::TimeIsUp);
        drop(record);
        if is_first {
            of.lost(LossReason::TimeLimit, at);
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
    pub(crate) lapses: u64,
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
        let open = HoldState::Lost(LossReason::DeletedOrSessionOver);
        self.report(self.look().unwrap_or(open))
    }

    /// The state, or `None` if the hold is lost for a reason that is not known yet.
    fn look(&self) -> Option<HoldState> {
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

    /// Reports this state. If a loss was reported before, its reason stays.
    fn report(&self, state: HoldState) -> HoldState {
        match state {
            HoldState::Lost(reason) => {
                HoldState::Lost(self.loss.report(reason, self.lost_at(reason)).reason)
            }
            state => state,
        }
    }

    /// Reports the loss of a hold, which is lost for this reason if no other is known.
    fn lost_for(&self, reason: LossReason) -> LossReason {
        let reason = match self.look() {
            Some(HoldState::Lost(known)) => known,
            _ => reason,
        };
        self.loss.report(reason, self.lost_at(reason)).reason
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

    pub(crate) fn is_of_same_grant(&self, other: &GrantState) -> bool {
        Arc::ptr_eq(&self.fate.0, &other.fate.0)
    }

    /// True if the hold is not lost. A loss without a known reason is a loss.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.look(), Some(HoldState::Held | HoldState::Suspended))
    }

    /// Resolves with the first state that is not `last`, once the reason of a loss is known.
    pub(crate) async fn changed_from(&self, last: Option<HoldState>) -> HoldState {
        let is_new = |state: &HoldState| Some(*state) != last;
        self.until(|now| now.look().filter(is_new).map(|state| now.report(state)))
            .await
    }

    /// Resolves when the grant is lost, and the reason is known.
    pub(crate) async fn lost(&self) -> LossReason {
        self.until(|now| match now.look().map(|state| now.report(state)) {
            Some(HoldState::Lost(reason)) => Some(reason),
            _ => None,
        })
        .await
    }

    /// Resolves when the grant is lost. The reason may not be known yet.
    pub(crate) async fn not_held(&self) {
        self.until(|now| (!now.is_held()).then_some(())).await;
    }

    /// Resolves when the reason is known, if the grant is lost.
    pub(crate) async fn explained(&self) {
        if self.fate.get() == Fate::Gone {
            self.until(|now| now.look().map(drop)).await;
        }
    }

    /// Resolves when a look at the state finds something.
    async fn until<T>(&self, find: impl Fn(&GrantState) -> Option<T>) -> T {
        let changed = || self.fate.changed();
        until(&self.live, changed, self.deadline, || find(self)).await
    }

    /// Resolves when the session has noticed that the grant is lost.
    ///
    /// Cheaper than [`lost`](Self::lost), which also resolves while the session's runtime is
    /// blocked.
    pub(crate) async fn noticed_lost(&self) {
        let mut condition = self.live.subscribe();
        loop {
            // Begins before the look at the state, so that no later change is missed.
            let fate = self.fate.changed();
            if !self.is_held() {
                return;
            }
            tokio::select! {
                biased;
                () = fate => {}
                // The session keeps the sender, so there is no error.
                _ = condition.changed() => {}
            }
        }
    }
}

/// Resolves when the lease lapses, or the session ends, after a grant at this number of lapses.
pub(crate) async fn outlived(live: &LiveSession, lapses: u64) -> LossReason {
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
/// `changed` begins to wait for another reason to look.
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

/// The guarded writes of one hold that the server has not answered.
///
/// Tasks of one process can hand a znode on, and the server cannot distinguish their holds. So the
/// process hands a hold on only after [`close`](Self::close), which needs an answer to every write
/// that has begun, and begins none after it: both take the mutex. A write without an answer is
/// counted until the hold ends: its future was dropped, its connection broke, or its thread has
/// begun it and not sent it yet.
///
/// If the hold cannot be closed, its owner deletes the znode, and the server refuses a late write.
/// [`docs::handoff`](crate::docs::handoff) has the argument. No step calls anything while it holds
/// the mutex, so a write may drop its own hold.
pub(crate) struct UnansweredWrites {
    /// The number of these writes. `None` once the hold is closed.
    number: Mutex<Option<usize>>,
}

impl Default for UnansweredWrites {
    fn default() -> UnansweredWrites {
        let number = Mutex::new(Some(0));
        UnansweredWrites { number }
    }
}

impl UnansweredWrites {
    /// Counts a write that is about to be sent. False if the hold is closed.
    #[must_use = "no write may be sent after the hold is closed"]
    pub(crate) fn begin(&self) -> bool {
        let mut number = lock(&self.number);
        number.as_mut().map(|number| *number += 1).is_some()
    }

    /// Notes that the server has answered a write that has begun.
    pub(crate) fn answered(&self) {
        if let Some(number) = &mut *lock(&self.number) {
            *number -= 1;
        }
    }

    /// Closes the hold for writes. False if there are writes without an answer.
    #[must_use = "a hold that is not closed may not be handed on"]
    pub(crate) fn close(&self) -> bool {
        lock(&self.number).take_if(|number| *number == 0).is_some()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/view.rs"]
mod tests;
