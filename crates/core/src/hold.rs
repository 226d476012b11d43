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
mod view;

use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use self::deletion::DeleteOutcome;
use self::grant::{Grant, Terms};
use self::loss_watch::LossWatch;
use self::open_session::OpenSession;
use self::own_znode::ZnodeOwner;
pub use self::transaction::GuardedTransaction;
pub use self::view::HoldView;
use crate::error::Error;
use crate::events::hold::HoldRecord;
use crate::hold_state::{Ended, LossReason};

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
    /// Knows the grant until the hold is dropped.
    open: Arc<OpenSession>,
    /// Deletes the znode in the background when the hold is dropped, unless it is deleted already.
    owner: ZnodeOwner,
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
    /// If the contender has waited, it has a loss watch. The session sets one for any other hold.
    pub(crate) fn begin(
        owner: ZnodeOwner,
        open: &Arc<OpenSession>,
        terms: Terms,
        record: HoldRecord,
        loss_watch: Option<LossWatch>,
    ) -> Hold {
        let grant = Arc::new(Grant::new(owner.znode.clone(), terms, record));
        if let Some(loss_watch) = loss_watch {
            grant.watch_by(loss_watch);
        }
        open.add_grant(&grant);
        grant.enforce_time_limit();
        // The session may have reported its end before the grant was registered. This notices it.
        grant.state();
        Hold {
            view: HoldView::new(grant),
            open: open.clone(),
            owner,
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

    /// True if this hold has a [view](Self::view) which is left.
    // Hidden: it serves the mutex of the crate `lock`, whose tasks share one hold.
    #[doc(hidden)]
    pub fn is_viewed(&self) -> bool {
        self.view.grant.views.load(Ordering::Acquire) > 1
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
    pub async fn release(self) -> Result<(), Error> {
        self.end_views()?;
        let (grant, znode) = (&self.view.grant, &self.owner.znode);
        let deletion = pin!(async {
            let id = grant.live().id;
            match znode.delete().await {
                Ok(DeleteOutcome::Deleted) => Ok(()),
                // No event of the deletion has come yet.
                Ok(DeleteOutcome::WasGone) => {
                    Err(Error::lost(znode.path(), id, LossReason::Deleted))
                }
                Err(error) => Err(Error::at_delete(znode.path(), id, error)),
            }
        });
        let released = pin!(grant.within_lease(deletion));
        let released = grant.live().in_a_runtime(released).await;
        grant.report(how_ended(&released));
        released
    }

    /// Ends the hold for all its views.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the hold is lost already.
    fn end_views(&self) -> Result<(), Error> {
        match self.view.grant.give_up() {
            Ended::Released => Ok(()),
            lost @ Ended::Lost(_) => Err(self.view.ended_error(lost)),
        }
    }
}

/// The end of a hold with this result of its release or its replacement.
fn how_ended<T>(result: &Result<T, Error>) -> Ended {
    match result {
        Err(Error::Lost { reason, .. }) => Ended::Lost(*reason),
        Err(Error::SessionOver { reason, .. }) => Ended::Lost(LossReason::Session(*reason)),
        _ => Ended::Released,
    }
}

impl Drop for Hold {
    /// Releases the hold, unless it is released already.
    ///
    /// The server handles the requests of a session in order, so the deletion needs no answer before
    /// the next contender of the process is created.
    fn drop(&mut self) {
        let grant = &self.view.grant;
        let ended = grant.give_up();
        // From here on the owner alone deletes the znode.
        self.open.forget_grant(self.owner.znode.number());
        self.owner.give_up();
        // A subscriber that blocks at a release does not delay the next contender.
        grant.report(ended);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Hold").field(&self.view).finish()
    }
}

#[cfg(test)]
#[path = "../tests/unit/hold.rs"]
mod tests;
