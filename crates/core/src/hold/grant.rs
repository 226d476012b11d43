//! One grant of a recipe to this process, the grants of a session, and their loss watches.
//!
//! | type | what it is |
//! |---|---|
//! | [`Hold`](crate::Hold), with `Held` | the public owner |
//! | [`HoldView`](crate::HoldView) | the public view |
//! | [`Grant`] | what the hold owns: its znode, its token, the number of lapses at the grant |
//! | [`RegisteredGrant`] | the session's copy: the session deletes a lost hold's znode, even if its owner keeps the hold |
//! | `GrantFate` | what has happened to the znode; the grant and the session's copy share it |
//! | `GrantState` | the state that views show: the lease, the fate, and the time limit |
//! | `HoldRecord`, `Record` | the record for events and metrics: the owner's, and the shared part |

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};

use crate::error::Error;
use crate::events::hold::HoldStart;
use crate::events::znode as events;
use crate::hold::deletion::Found;
use crate::hold::grant_state::{Fate, GrantFate, GrantState, until_lapsed_or_over};
use crate::hold::own_znode::{Znode, ZnodeOwner};
use crate::hold::registry::{Entry, Registry};
use crate::hold::view::HoldView;
use crate::hold_state::{FencingToken, FirstLoss, HoldState, LossReason};
use crate::live::lease::Lapses;
use crate::live::live_session::{LiveSession, Status};
use crate::retry::{Backoff, FIRST_WAIT};
use crate::rule::Rule;
use crate::server::ensemble::{Event, ServerSession, Stat, Watch};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::sync::ready_now;

/// One grant of a recipe to this process.
///
/// If it is dropped, it is released in the background.
pub(crate) struct Grant {
    /// Dropped first. The owner alone then deletes the znode.
    pub(crate) entry: Entry<RegisteredGrant>,
    pub(crate) owner: ZnodeOwner,
    /// The rule of the queue; `None` if the recipe has no queue.
    pub(crate) rule: Option<Arc<dyn Rule>>,
    pub(crate) token: FencingToken,
    /// The number of lapses of the session's lease at the grant.
    pub(crate) lapses: Lapses,
    pub(crate) fate: GrantFate,
}

impl Grant {
    /// Grants the recipe to the owner of a znode.
    ///
    /// The lease has [begun](LiveSession::begin_grant) the grant after this number of lapses.
    pub(crate) fn new(
        owner: ZnodeOwner,
        granted: &Granted,
        lapses: Lapses,
        token: FencingToken,
        loss_watch: Option<LossWatch>,
    ) -> Grant {
        owner.znode.set_held(true);
        let fate = GrantFate::default();
        let grant = RegisteredGrant {
            lapses,
            znode: owner.znode.clone(),
            fate: fate.clone(),
            is_watched: loss_watch.is_some(),
        };
        if let Some(loss_watch) = loss_watch {
            let live = owner.znode.live();
            live.in_background(grant.clone().follow(loss_watch));
        }
        Grant {
            entry: granted.add(grant),
            owner,
            rule: None,
            token,
            lapses,
            fate,
        }
    }

    /// When a time limit that begins now passes, by the ensemble's clock.
    pub(crate) fn deadline(&self, at_most: Option<Duration>) -> Option<Duration> {
        at_most.and_then(|at_most| self.owner.znode.live().now().checked_add(at_most))
    }

    /// What the record of a hold by this grant begins with.
    pub(crate) fn start(&self) -> HoldStart<'_> {
        HoldStart {
            token: self.token,
            path: self.owner.znode.path(),
            now: self.owner.znode.live().now(),
        }
    }

    /// True if the grant is not lost.
    ///
    /// The time limit is that of the hold.
    pub(crate) fn is_held(&self) -> bool {
        let state = self.owner.znode.live().hold_state(self.lapses);
        self.fate.get() == Fate::Intact && !matches!(state, HoldState::Lost(_))
    }

    pub(crate) fn state(&self, deadline: Option<Duration>, loss: FirstLoss) -> GrantState {
        GrantState {
            live: self.owner.znode.live().clone(),
            lapses: self.lapses,
            fate: self.fate.clone(),
            deadline,
            loss,
        }
    }

    /// Deletes the znode, and waits for the answer, or for the loss of the hold.
    ///
    /// If the future is dropped, or after an error, the znode is deleted in the background.
    pub(crate) async fn release(mut self) -> Result<(), Error> {
        let znode = self.owner.znode.clone();
        let (live, path) = (znode.live(), znode.path());
        let deleted = tokio::select! {
            biased;
            deleted = znode.delete() => deleted,
            reason = until_lapsed_or_over(live, self.lapses) => match reason {
                LossReason::Session(end) => Err(ServerError::SessionOver(end)),
                reason => return Err(Error::lost(path, live.id, reason)),
            },
        };
        if !matches!(deleted, Err(ServerError::Refused(_))) {
            self.owner.disown();
        }
        let released = match deleted {
            Ok(Found::Znode) => Ok(()),
            // No event of the deletion has come yet.
            Ok(Found::Nothing) => Err(Error::lost(path, live.id, LossReason::Deleted)),
            Err(error) => Err(Error::at_delete(path, live.id, error)),
        };
        live.note_end(&released);
        released
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.fate.get().is_deleted() {
            self.owner.disown();
        } else if self.owner.znode.is_named() && !self.is_held() {
            self.owner.znode.set_held(false);
        }
    }
}

/// Deletes the znode of a hold in the background once its time limit has passed.
///
/// The task does nothing if the hold has no time limit, or ends before. The hold itself reports the
/// loss by the clock, even if this task does not run.
pub(crate) fn enforce_time_limit(hold: &HoldView, grant: &Grant) {
    let Some(deadline) = hold.grant_state.deadline else {
        return;
    };
    let (hold, fate) = (hold.clone(), grant.fate.clone());
    let live = grant.owner.znode.live().clone();
    live.clone().in_background(async move {
        tokio::select! {
            biased;
            _ = hold.ended_by_owner() => return,
            () = hold.grant_state.until_time_is_up() => {}
        }
        if fate.end_by_time_limit(deadline) {
            hold.znode.set_held(false);
            hold.znode.delete_in_background(());
        }
    });
}

/// The holds granted in a session and not yet released.
pub(crate) type Granted = Registry<RegisteredGrant>;

/// A grant in the registry of its session.
#[derive(Clone)]
pub(crate) struct RegisteredGrant {
    lapses: Lapses,
    znode: Znode,
    fate: GrantFate,
    /// False if its loss watch is to be set at the next probe.
    ///
    /// Most holds are released before a loss watch is worth a request.
    is_watched: bool,
}

impl Granted {
    /// Sets a loss watch for each hold granted since the last probe.
    pub(crate) fn watch_each(&self, live: &Arc<LiveSession>, server: &Arc<dyn ServerSession>) {
        let mut unwatched = Vec::new();
        for grant in self.lock().values.values_mut() {
            if !std::mem::replace(&mut grant.is_watched, true) {
                unwatched.push(grant.clone());
            }
        }
        for grant in unwatched {
            live.in_background(grant.watch(server.clone()));
        }
    }

    /// Deletes the znodes of the holds that were lost by this lapse of the lease.
    ///
    /// A lost hold must not keep other contenders waiting, even if its owner keeps it.
    pub(crate) fn delete_lost(&self, lapses: Lapses) {
        for znode in self.take_lost(lapses) {
            znode.set_held(false);
            znode.delete_in_background(());
        }
    }

    /// Reports each hold as lost with its session, unless the lease had lapsed before.
    pub(crate) fn report_end(&self, end: SessionEnd) {
        let grants = std::mem::take(&mut self.lock().values);
        for grant in grants.values() {
            let live = grant.znode.live();
            let (reason, at) = match live.hold_state(grant.lapses) {
                HoldState::Lost(reason @ LossReason::LeaseElapsed) => (reason, live.lapsed_at()),
                _ => (LossReason::Session(end), live.now()),
            };
            grant.fate.with_record(|record| record.lost(reason, at));
            grant.znode.pass_turn();
        }
    }

    /// Registers the znode that is to replace the znode of a grant made after this number of
    /// lapses.
    ///
    /// If the lease lapses before the replacement is granted, this znode is deleted, too.
    pub(crate) fn add_replacement(&self, lapses: Lapses, znode: Znode) -> Entry<RegisteredGrant> {
        self.add(RegisteredGrant {
            lapses,
            znode,
            fate: GrantFate::default(),
            is_watched: true,
        })
    }

    /// Warns that a contender of this session has waited this long behind these of its holds.
    ///
    /// The method does nothing if the hold itself is younger than the session timeout.
    pub(crate) fn warn_of_own_wait(
        &self,
        contender: &str,
        waited: Duration,
        is_awaited: impl Fn(&str) -> bool,
    ) {
        let is_awaited = |grant: &&RegisteredGrant| is_awaited(grant.znode.path());
        let awaited = self.lock().values.values().find(is_awaited).cloned();
        if let Some(RegisteredGrant { znode, fate, .. }) = awaited {
            let (holder, longest) = (znode.path(), znode.live().timeout);
            fate.with_record(|record| record.warn_of_own_wait(contender, holder, waited, longest));
        }
    }

    /// Sets the fate of each grant that was made before the last lapse, and returns their znodes.
    fn take_lost(&self, lapses: Lapses) -> Vec<Znode> {
        let mut lost = Vec::new();
        self.lock().values.retain(|_, grant| {
            // A hold may have been granted after a later lapse meanwhile.
            let is_lost = grant.lapses < lapses;
            if is_lost {
                lost.push(grant.clone());
            }
            !is_lost
        });
        let reported = lost.into_iter().map(|RegisteredGrant { znode, fate, .. }| {
            fate.set_and_report(
                Fate::Lost(LossReason::LeaseElapsed),
                znode.live().lapsed_at(),
            );
            znode
        });
        reported.collect()
    }

    /// Reports to the holds whether a server answers.
    pub(crate) fn report_suspended(&self, is_suspended: bool) {
        let fates = |grant: &RegisteredGrant| grant.fate.clone();
        let fates: Vec<GrantFate> = self.lock().values.values().map(fates).collect();
        for fate in fates {
            fate.with_record(|record| record.suspended(is_suspended));
        }
    }
}

impl RegisteredGrant {
    /// Sets the loss watch, and reports the fate of the znode.
    async fn watch(self, server: Arc<dyn ServerSession>) {
        let znode = self.znode.clone();
        let loss_watch = LossWatch::new(Watched { server, znode }, None);
        // Other contenders may have come by now, and may wait.
        self.znode.mark_on_release();
        self.follow(loss_watch).await;
    }

    /// Follows the znode by its loss watch until the hold is lost, and reports the loss.
    ///
    /// If another client has written to the znode, the method deletes it. A lost hold must not keep
    /// other contenders waiting.
    async fn follow(self, mut loss_watch: LossWatch) {
        let loss = loss_watch.lost().await;
        if loss == ZnodeLoss::Deleted {
            self.znode.pass_turn();
        }
        let at = self.znode.live().now();
        let reason = match loss {
            // The deletion is this process's own. The fate only spares the owner another one.
            ZnodeLoss::Deleted if self.znode.is_being_deleted() => LossReason::Deleted,
            ZnodeLoss::Deleted => {
                self.fate.set_and_report(Fate::Gone, at);
                self.explain().await
            }
            ZnodeLoss::Written => LossReason::Written,
        };
        let live = self.znode.live();
        match live.hold_state(self.lapses) {
            HoldState::Lost(lapse @ LossReason::LeaseElapsed) => {
                self.fate
                    .set_and_report(Fate::Lost(lapse), live.lapsed_at());
            }
            // The session reports its end.
            HoldState::Lost(_) if reason == LossReason::DeletedOrSessionOver => {}
            _ => self.fate.set_and_report(Fate::Lost(reason), at),
        }
        // The process's own release writes to the znode, too.
        if loss == ZnodeLoss::Written && !self.znode.is_being_deleted() {
            self.znode.delete_in_background(());
        }
    }

    /// Finds out if another client has deleted the znode, or if it was deleted with the session.
    ///
    /// A server that deletes the znodes of a session reports this before it closes the connection.
    /// If it answers a later request of the session, the session was not over. The documented limit
    /// for the report of a deletion leaves a twentieth of the session timeout for the answer.
    async fn explain(&self) -> LossReason {
        let live = self.znode.live();
        let lasts = tokio::time::timeout(live.timeout / 20, until_session_answers(live));
        match lasts.await {
            Ok(()) => LossReason::Deleted,
            Err(_) => LossReason::DeletedOrSessionOver,
        }
    }
}

/// Resolves when a server answers a request of the session.
///
/// If the session is over, the future marks it as ended and never resolves: the caller ends with
/// the session.
pub(crate) async fn until_session_answers(live: &LiveSession) {
    let mut backoff = Backoff::up_to(live.probe_interval);
    loop {
        let answered = match live.server() {
            Ok(server) => server.sync("/").await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(_) => return,
            Err(ServerError::SessionOver(end)) => {
                live.set_status(Status::Ended(end));
                return std::future::pending().await;
            }
            Err(_) => backoff.wait().await,
        }
    }
}

/// A watch on the owner's znode that is set again after each event.
///
/// The watch resolves when the znode is deleted. If only the owner can write to the znode, it also
/// resolves when somebody else has written. It does not resolve if the session ends: the session
/// itself reports its end.
pub(crate) struct LossWatch {
    watching: BoxFuture<'static, ZnodeLoss>,
    /// The result of `watching`, once it has resolved.
    loss: Option<ZnodeLoss>,
    is_set: Arc<AtomicBool>,
}

/// Why a znode is no longer its owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZnodeLoss {
    Deleted,
    /// The znode is there, but somebody wrote to it.
    ///
    /// Nobody but the owner should be able to write. The waiters take the write for a release.
    Written,
}

/// What a loss watch knows of its znode at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The watch is set, and has reported nothing.
    Certain,
    /// The watch is not set, and is about to be set again.
    Doubtful,
    Lost(ZnodeLoss),
}

/// The znode that a loss watch watches, and the server that reports its events.
pub(crate) struct Watched {
    pub(crate) server: Arc<dyn ServerSession>,
    pub(crate) znode: Znode,
}

impl Watched {
    /// How the owner's znode was lost, by the znode found at its path.
    pub(crate) fn loss(&self, stat: &Stat) -> Option<ZnodeLoss> {
        if !self.znode.is_still(stat) {
            return Some(ZnodeLoss::Deleted);
        }
        let was_written = self.znode.is_closed_to_others() && stat.version != 0;
        was_written.then_some(ZnodeLoss::Written)
    }

    fn loss_by(&self, event: Event) -> Option<ZnodeLoss> {
        match event {
            Event::Deleted => Some(ZnodeLoss::Deleted),
            Event::DataChanged if self.znode.is_closed_to_others() => Some(ZnodeLoss::Written),
            _ => None,
        }
    }
}

impl LossWatch {
    /// Continues this watch. If there is none, sets one when the loss watch is first polled.
    pub(crate) fn new(watched: Watched, watch: Option<Watch>) -> LossWatch {
        let is_set = Arc::new(AtomicBool::new(watch.is_some()));
        let watching = watch_until_lost(watched, watch, is_set.clone());
        LossWatch {
            watching: watching.boxed(),
            loss: None,
            is_set,
        }
    }

    /// Resolves when the znode is no longer its owner's.
    ///
    /// Cancel safe: the future may be dropped, and the method called again.
    pub(crate) async fn lost(&mut self) -> ZnodeLoss {
        match self.loss {
            Some(loss) => loss,
            None => *self.loss.insert((&mut self.watching).await),
        }
    }

    /// What the session's events until now say of the znode.
    pub(crate) fn certainty(&mut self) -> Certainty {
        match ready_now(self.lost()) {
            Some(loss) => Certainty::Lost(loss),
            None if self.is_set.load(Ordering::Relaxed) => Certainty::Certain,
            None => Certainty::Doubtful,
        }
    }
}

async fn watch_until_lost(
    watched: Watched,
    mut watch: Option<Watch>,
    is_set: Arc<AtomicBool>,
) -> ZnodeLoss {
    let Watched { server, znode } = &watched;
    let longest = znode.live().timeout;
    let mut backoff = Backoff::up_to(longest);
    loop {
        if let Some(watch) = watch.take() {
            let event = watch.await;
            is_set.store(false, Ordering::Relaxed);
            if let Some(loss) = watched.loss_by(event) {
                return loss;
            }
            if let Event::SessionEnded(_) = event {
                return std::future::pending().await;
            }
        }
        match server.get_and_watch(znode.path()).await {
            Ok((_, stat, set)) => {
                if let Some(loss) = watched.loss(&stat) {
                    return loss;
                }
                is_set.store(true, Ordering::Relaxed);
                watch = Some(set);
                backoff = Backoff::up_to(longest);
            }
            Err(error) if error.is(Refusal::NoNode) => return ZnodeLoss::Deleted,
            // The request itself waits for the connection, so this loop does not spin.
            Err(ServerError::OutcomeUnknown(_)) => tokio::time::sleep(FIRST_WAIT).await,
            // The server may accept a later request, and until then only the session reports a
            // loss.
            Err(ServerError::Refused(refusal)) => {
                if backoff.is_new() {
                    events::loss_watch_refused(znode.path(), &refusal);
                }
                backoff.wait().await;
            }
            Err(ServerError::SessionOver(_)) => return std::future::pending().await,
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/grant.rs"]
mod tests;
