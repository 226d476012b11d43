//! The hold: what every recipe returns.

mod abandoned_creates;
mod deletion;
mod ephemerals;
pub(crate) mod grant;
pub(crate) mod handoff;
pub(crate) mod loss_watch;
pub(crate) mod named;
pub(crate) mod open_session;
pub(crate) mod own_znode;
mod replace;
pub(crate) mod search;
mod transaction;

use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;

use self::deletion::DeleteOutcome;
pub use self::grant::HoldView;
use self::grant::{Grant, Terms};
use self::loss_watch::LossWatch;
use self::open_session::OpenSession;
use self::own_znode::ZnodeOwner;
pub use self::transaction::GuardedTransaction;
use crate::error::Error;
use crate::hold_state::{Ended, LossReason};
use crate::server::error::ServerError;

/// A recipe that is held, until the hold is released, dropped or lost.
///
/// One place in the program owns a hold. [`release`](Self::release) or a drop releases it. A task
/// that works under the hold, and does not decide when it ends, takes a [`view`](Self::view). A hold
/// has all methods of its [`HoldView`], too.
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
/// [`is_held`](HoldView::is_held) returns false before the server can let another contender hold,
/// right after a pause of the process, too.
///
/// It does not if somebody deletes the holder's znode by hand. The holder notices the deletion
/// within a sixth of the session timeout. The next contender may hold before that.
///
/// It does not protect the work that follows it. The process can be paused between the answer and
/// the work. If a late write must fail, let the store check:
///
/// * In ZooKeeper, write with a [`transaction`](HoldView::transaction). The server refuses the
///   write once the holder's znode is deleted.
/// * In any other store, refuse a [`fencing_token`](HoldView::fencing_token) that is older than the
///   newest token seen.
#[must_use = "if unused, the hold is released at once"]
pub struct Hold {
    pub(crate) view: HoldView,
    /// `None` once the hold is released or replaced, and while it is dropped.
    held: Option<Held>,
}

/// What the owner of a hold alone has. If it is dropped, the znode is deleted in the background.
struct Held {
    owner: ZnodeOwner,
    /// Knows the grant until this value is dropped.
    open: Arc<OpenSession>,
}

impl Drop for Held {
    /// The owner alone then deletes the znode.
    fn drop(&mut self) {
        self.open.forget_grant(self.owner.znode.number());
    }
}

impl Deref for Hold {
    type Target = HoldView;

    fn deref(&self) -> &HoldView {
        &self.view
    }
}

impl Hold {
    /// Begins the hold of the owner of a znode, on these terms.
    ///
    /// If the contender has waited, it has a loss watch.
    pub(crate) fn begin(
        owner: ZnodeOwner,
        open: &Arc<OpenSession>,
        terms: Terms,
        loss_watch: Option<LossWatch>,
    ) -> Hold {
        owner.znode.set_held(true);
        if loss_watch.is_some() {
            // Others have probably come during the wait. A hold without a wait is marked from its
            // first loss watch on: a brief hold seldom has a waiter, and a plain deletion costs
            // less.
            owner.znode.mark_on_release();
        }
        let grant = Arc::new(Grant::new(owner.znode.clone(), terms));
        let open = open.clone();
        open.add_grant(&grant);
        if let Some(loss_watch) = loss_watch.filter(|_| grant.takes_watch()) {
            grant.live().in_background(grant.clone().follow(loss_watch));
        }
        grant.enforce_time_limit();
        // The session may have reported its end before the grant was registered.
        grant.ended();
        Hold {
            view: HoldView { grant },
            held: Some(Held { owner, open }),
        }
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
        let lost = || match self.view.grant.ended() {
            Some(Ended::Lost(reason)) => Some(reason),
            _ => None,
        };
        self.view.grant.until(lost).await
    }

    /// A view of the hold, for tasks that do not own it.
    pub fn view(&self) -> HoldView {
        self.view.clone()
    }

    /// Runs the work until it is done, or until the hold is lost.
    ///
    /// If the hold is lost first, the work is dropped at its current `await`. Work that blocks its
    /// thread is not stopped: it must ask [`is_held`](HoldView::is_held). Its result is dropped if it
    /// is done later than the loss.
    ///
    /// # Errors
    ///
    /// The reason of the loss, if the hold is lost before the work is done.
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
            _ = self.lost() => {}
            // Work that blocked its thread may have outlasted the hold.
            done = work => if self.is_held() {
                return Ok(done);
            },
        }
        Err(self.lost().await)
    }

    /// Releases the hold, and waits for the server's answer.
    ///
    /// The [views](Self::view) of the hold end before anything is sent. A deletion of unknown outcome
    /// is repeated until the server answers or the lease runs out.
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
    ///   not have been protected to its end.
    /// * [`Error::SessionOver`] if the session ends before the server answers.
    /// * [`Error::Refused`] if the server does not delete the znode.
    ///
    /// Nothing is left to do then: the deletion is repeated in the background, with a pause that grows
    /// to the session timeout, and the znode is deleted with the session at the latest.
    ///
    /// # Cancel safety
    ///
    /// Once the future is polled, the hold is released even if the future is dropped.
    pub async fn release(mut self) -> Result<(), Error> {
        let (held, ended) = self.end().expect(NOT_ENDED);
        if let Ended::Lost(_) = ended {
            return Err(self.view.ended_error(ended));
        }
        let grant = &self.view.grant;
        let released = pin!(held.release(grant));
        let released = grant.live().in_a_runtime(released).await;
        if let Err(error) = &released {
            grant.report(how_ended(error));
        }
        released
    }

    /// Ends the hold for all its views.
    fn end(&mut self) -> Option<(Held, Ended)> {
        let held = self.held.take()?;
        Some((held, self.view.grant.give_up()))
    }
}

impl Held {
    /// Deletes the znode, and waits for the answer, or for the loss of the hold.
    ///
    /// If the future is dropped, or after an error, the znode is deleted in the background.
    async fn release(self, grant: &Grant) -> Result<(), Error> {
        let (znode, live) = (&grant.znode, grant.live());
        let deleted = tokio::select! {
            biased;
            deleted = znode.delete() => deleted,
            reason = grant.until_lapsed_or_over() => match reason {
                LossReason::Session(end) => Err(ServerError::SessionOver(end)),
                reason => return Err(Error::lost(znode.path(), live.id, reason)),
            },
        };
        let released = match deleted {
            Ok(DeleteOutcome::Deleted) => Ok(()),
            // No event of the deletion has come yet.
            Ok(DeleteOutcome::WasGone) => {
                Err(Error::lost(znode.path(), live.id, LossReason::Deleted))
            }
            Err(error) => Err(Error::at_delete(znode.path(), live.id, error)),
        };
        live.note_end(&released);
        released
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
        self.view.grant.report(Ended::Released);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Hold").field(&self.view).finish()
    }
}
