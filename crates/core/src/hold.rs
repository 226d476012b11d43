//! The hold: what every recipe returns.

mod abandoned_creates;
mod deletion;
mod ephemerals;
pub(crate) mod grant;
pub(crate) mod grant_state;
pub(crate) mod last_alone;
pub(crate) mod open_session;
pub(crate) mod own_znode;
pub(crate) mod registry;
mod replace;
pub(crate) mod search;
pub(crate) mod sole_writer;
mod transaction;
pub(crate) mod view;

use std::fmt;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::stream::Stream;
use tokio::sync::OwnedSemaphorePermit;

use self::grant::{Grant, enforce_time_limit};
pub use self::transaction::GuardedTransaction;
pub use self::view::HoldView;
use crate::error::Error;
use crate::events::hold::HoldRecord;
use crate::hold_state::{Ended, FencingToken, HoldState, LossReason};
use crate::server::ensemble::{Acl, SessionId};

/// A recipe that is held, until the hold is released, dropped or lost.
///
/// One place in the program owns a hold. [`release`](Self::release) or a drop releases it. A task
/// that works under the hold, and does not decide when it ends, takes a [`view`](Self::view).
///
/// A drop sends the deletion of the znode before it returns, unless 16 deletions of the session have
/// no answer yet. So an [`acquire`] after it, in the same session, waits for one round trip in all:
/// the server handles the requests in order.
/// A task of the session waits for the answer. Nothing waits for that task at the end of `main`,
/// so the znode may exist until the session times out. End a process with
/// [`release`](Self::release) or [`Session::close`](crate::Session::close).
///
/// [`acquire`]: crate::Recipe::acquire
///
/// # What it promises
///
/// [`is_held`](Self::is_held) says no before the server can let another contender hold. It says
/// so right after a pause of the process, too.
///
/// It does not say so in time if somebody deletes the holder's znode by hand. The holder notices
/// the deletion within a sixth of the session timeout. The next contender may hold before that.
///
/// It does not protect the work that follows it. The process can be paused between the answer and
/// the work. If a late write must fail, let the store check:
///
/// * In ZooKeeper, write with a [`transaction`](Self::transaction). The server refuses the
///   write once the holder's znode is deleted.
/// * In any other store, refuse a [`fencing_token`](Self::fencing_token) that is older than the
///   newest token seen.
#[must_use = "if unused, the hold is released at once"]
pub struct Hold {
    pub(crate) view: HoldView,
    /// `None` once the hold is released or replaced, and while it is dropped.
    pub(crate) held: Option<Held>,
}

pub(crate) struct Held {
    pub(crate) grant: Grant,
    record: HoldRecord,
}

impl Hold {
    /// A hold by this grant, until the ensemble's clock shows `deadline`.
    pub(crate) fn new(grant: Grant, record: HoldRecord, deadline: Option<Duration>) -> Hold {
        let state = grant.state(deadline, record.loss());
        let shared = record.shared();
        grant.fate.set_record(Some(shared.clone()));
        // A loss before that found no record to report to.
        state.report_loss_to(&shared);
        let view = HoldView::new(state, grant.owner.znode.clone(), grant.token);
        enforce_time_limit(&view, &grant);
        Hold {
            view,
            held: Some(Held { grant, record }),
        }
    }

    /// Keeps a turn among the clones of the queue until the deletion of the znode is sent, or the
    /// session has noticed that the hold is lost.
    pub(crate) fn keep_turn(&self, turn: OwnedSemaphorePermit) {
        self.view.znode.keep_turn(turn);
        // The session may have reported its end before it knew of this hold.
        if !self.is_held() {
            self.view.znode.pass_turn();
        }
    }

    /// The path of the holder's znode. [`Recipe::path`](crate::Recipe::path) is its directory.
    pub fn node_path(&self) -> &str {
        self.view.node_path()
    }

    /// The token by which a store distinguishes this holder from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.view.fencing_token()
    }

    /// The ZooKeeper session that the hold belongs to: see [`HoldView::session_id`].
    pub fn session_id(&self) -> SessionId {
        self.view.session_id()
    }

    /// When the hold was acquired.
    pub fn acquired_at(&self) -> Instant {
        self.view.acquired_at()
    }

    /// The state now: see [`HoldView::state`]. The call sends nothing.
    pub fn state(&self) -> HoldState {
        self.view.state()
    }

    /// True if the recipe is certainly still held: see [`HoldView::is_held`]. The call sends
    /// nothing.
    pub fn is_held(&self) -> bool {
        self.view.is_held()
    }

    /// How long the recipe is certainly held without a further answer: see [`HoldView::remaining`].
    pub fn remaining(&self) -> Duration {
        self.view.remaining()
    }

    /// The state now, and then each change: see [`HoldView::states`].
    pub fn states(&self) -> impl Stream<Item = HoldState> + Send + Unpin + 'static + use<> {
        self.view.states()
    }

    /// Begins writes that the server applies only if the holder's znode exists.
    ///
    /// Nothing is sent before the commit: see [`HoldView::transaction`].
    pub fn transaction(&self) -> GuardedTransaction {
        self.view.transaction()
    }

    /// Resolves when the hold is lost, before another contender can hold.
    ///
    /// A release needs the hold itself, so it does not resolve this future. The limits and the
    /// cancel safety are those of [`HoldView::ended`].
    ///
    /// ```
    /// # use zookeeper_recipes_core::{Hold, LossReason};
    /// # async fn work() -> Result<(), LossReason> { Ok(()) }
    /// # async fn example(hold: Hold) -> Result<(), LossReason> {
    /// tokio::select! {
    ///     done = work() => done?,
    ///     reason = hold.lost() => return Err(reason),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn lost(&self) -> LossReason {
        self.view.grant_state.lost().await
    }

    /// A view of the hold, for tasks that do not own it.
    pub fn view(&self) -> HoldView {
        self.view.clone()
    }

    /// Runs the work until it is done, or until the hold is lost.
    ///
    /// If the hold is lost first, the work is dropped at its current `await`. The work is polled
    /// only while the recipe is held. Work that blocks its thread is not stopped: it must ask
    /// [`is_held`](Self::is_held).
    ///
    /// # Errors
    ///
    /// The reason of the loss, if the hold is lost before the work is done. Work that blocks its
    /// thread can be done later than the loss. Its result is dropped.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped. The recipe stays held.
    ///
    /// ```
    /// # use zookeeper_recipes_core::{Error, Recipe};
    /// # async fn write_report() {}
    /// # async fn example(recipe: &dyn Recipe) -> Result<(), Error> {
    /// let hold = recipe.acquire().await?;
    /// match hold.run_until_lost(write_report()).await {
    ///     Ok(()) => hold.release().await?,
    ///     Err(reason) => eprintln!("{reason}, so the work was stopped"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_until_lost<T>(&self, work: impl Future<Output = T>) -> Result<T, LossReason> {
        tokio::select! {
            biased;
            () = self.view.grant_state.not_held() => {}
            // Work that blocked its thread may have outlasted the hold.
            done = work => if self.is_held() {
                return Ok(done);
            },
        }
        // The work is dropped. The reason may come later.
        Err(self.lost().await)
    }

    /// Replaces the holder's znode by one with the same number and another label.
    ///
    /// A write lock becomes a read lock in this way.
    ///
    /// One transaction creates the new znode and deletes the old one, so no other contender holds
    /// in between. `from` and `to` are the labels (see
    /// [`Contender::label`](crate::Contender::label)). The fencing token stays the same: it must be
    /// older than the tokens of the waiters, and the new znode's `czxid` is not. The views of the
    /// hold end. The time limit does not begin again.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if the label is not `from`, or the rule does not
    ///   [allow it](crate::RuleHints::may_be_replaced), or the number is at the end of the count:
    ///   such znodes are ordered by age, and the new one would be the youngest.
    /// * [`Error::Lost`], [`Error::Refused`] and [`Error::SessionOver`].
    ///
    /// After an error, or if the future is dropped, the hold is released.
    // Hidden: only a write lock has a kind of contender that its hold can become.
    #[doc(hidden)]
    pub async fn replace(
        mut self,
        from: &str,
        to: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<Hold, Error> {
        let (held, ended) = self.end().expect(NOT_ENDED);
        if let Ended::Lost(reason) = ended {
            return Err(self.view.lost_error(reason));
        }
        let Held { grant, record } = held;
        let replaced = grant.replace(from, to, data, acl).await;
        let now = || self.view.grant_state.live.now();
        let grant = replaced.inspect_err(|error| record.ended(how_ended(error), now()))?;
        let record = match &grant.rule {
            Some(rule) => record.replaced(rule.hints().recipe(to), grant.start()),
            None => record,
        };
        let deadline = self.view.grant_state.deadline;
        Ok(Hold::new(grant, record, deadline))
    }

    /// Releases the hold, and waits for the server's answer.
    ///
    /// The [views](Self::view) of the hold end before anything is sent. If the outcome of the
    /// deletion is unknown, the deletion is repeated until the server answers or the lease runs
    /// out. If the znode is deleted already, the call first waits for the reason, for at most a
    /// twentieth of the session timeout.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the deletion of the holder's znode | 1, or a share of 1 if the session deletes many znodes at once | 1 | 0 |
    ///
    /// The future may be polled on any thread. Outside of a tokio runtime, it measures the time in
    /// the runtime of the session, which must run. Inside a runtime, the time of that runtime must
    /// be enabled.
    ///
    /// # Errors
    ///
    /// * [`Error::Lost`] if the hold is lost before the server answers. The work under the hold may
    ///   not have been protected to its end. The znode is deleted in the background.
    /// * [`Error::SessionOver`] if the session ends before the server answers.
    /// * [`Error::Refused`] if the server does not delete the znode. The deletion is repeated in the
    ///   background, with a pause that grows to the session timeout.
    ///
    /// After each of these errors nothing is left to do: the znode is deleted with the session at
    /// the latest.
    ///
    /// # Cancel safety
    ///
    /// Once the future is polled, the hold is released even if the future is dropped.
    pub async fn release(mut self) -> Result<(), Error> {
        let live = self.view.grant_state.live.clone();
        live.in_a_runtime(pin!(self.view.grant_state.explained()))
            .await;
        let (held, ended) = self.end().expect(NOT_ENDED);
        let Held { grant, record } = held;
        if let Ended::Lost(reason) = ended {
            return Err(self.view.lost_error(reason));
        }
        let released = live.in_a_runtime(pin!(grant.release())).await;
        if let Err(error) = &released {
            record.ended(how_ended(error), live.now());
        }
        released
    }

    /// Ends the hold for all its views.
    pub(crate) fn end(&mut self) -> Option<(Held, Ended)> {
        let held = self.held.take()?;
        let ended = self.view.state().ended().unwrap_or(Ended::Released);
        // An error means that it was set before, and only the first end counts.
        let _ = self.view.owner_end.set(ended);
        // From here on the owner reports the end: its own deletion is not a loss.
        held.grant.fate.set_record(None);
        if ended != Ended::Released {
            held.record.ended(ended, self.view.grant_state.live.now());
        }
        Some((held, ended))
    }
}

/// The end of a hold whose release or replacement failed with this error.
fn how_ended(error: &Error) -> Ended {
    match error {
        Error::Lost { reason, .. } => Ended::Lost(*reason),
        Error::SessionOver { reason, .. } => Ended::Lost(LossReason::Session(*reason)),
        _ => Ended::Released,
    }
}

const NOT_ENDED: &str = "a hold that can be used has not been released";

impl Drop for Hold {
    fn drop(&mut self) {
        // A grant that is dropped is released in the background. The server handles the requests of
        // a session in order, so the deletion needs no answer before the next contender of the
        // process is created.
        drop(self.end());
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Hold").field(&self.view).finish()
    }
}
