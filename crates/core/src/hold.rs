//! The hold: what every recipe yields.

pub(crate) mod deletions;
pub(crate) mod fate;
pub(crate) mod find_own;
pub(crate) mod grant;
pub(crate) mod granted;
pub(crate) mod guard;
pub(crate) mod loss_watch;
pub(crate) mod marked_release;
pub(crate) mod own_znode;
pub(crate) mod owned;
mod replace;
pub(crate) mod standing;
mod transaction;
pub(crate) mod turn;
pub(crate) mod view;

use std::fmt;
use std::ops::Deref;

use tokio::sync::watch;

use self::grant::Grant;
pub use self::transaction::GuardedTransaction;
use self::turn::Turn;
pub use self::view::HoldView;
use crate::error::Error;
use crate::hold_state::{HoldState, LossReason};
use crate::server::ensemble::Acl;

/// Proof, as far as a process can have one, that a recipe is held.
///
/// Owned by one place: what is held is released by [`release`](Self::release) or by a drop. Tasks
/// that work under the hold, and do not decide when it ends, take a [`view`](Self::view) of it.
///
/// What is dropped is released by a task of the session. At the end of `main` nothing waits for
/// that task, and the znode may stand until the session times out. So end a process with
/// [`release`](Self::release) or [`Session::close`](crate::Session::close).
///
/// # What it is worth
///
/// [`is_held`](HoldView::is_held) is certain: it says no before the server can have passed the
/// hold on, also right after a pause of the process. The exception is a znode that somebody deletes
/// by hand: the holder notices within a sixth of the session timeout at most, and the next contender
/// may hold before that. But between that look and the work it was to
/// protect the process can be paused again. Where that must not matter, let the other side check:
/// a write to ZooKeeper through [`transaction`](HoldView::transaction) is refused by the server
/// itself once the hold has gone, and any other store can refuse a
/// [`fencing_token`](HoldView::fencing_token) older than the newest it has seen.
#[must_use = "if unused, what is held is released at once"]
pub struct Hold {
    view: HoldView,
    /// `None` while it is dropped.
    held: Option<Held>,
}

struct Held {
    grant: Grant,
    turn: Option<Box<dyn Turn>>,
    /// Tells the views how it ended.
    ended: watch::Sender<Option<LossReason>>,
}

impl Hold {
    pub(crate) fn new(grant: Grant, turn: Option<Box<dyn Turn>>) -> Hold {
        if let Some(turn) = &turn {
            turn.held_by(grant.standing());
        }
        let (ended, end) = watch::channel(None);
        let node = grant.owned.node.clone();
        Hold {
            view: HoldView::new(grant.standing(), node, grant.token, end),
            held: Some(Held { grant, turn, ended }),
        }
    }

    /// What it can tell, for tasks that do not own it.
    pub fn view(&self) -> HoldView {
        self.view.clone()
    }

    /// Works until the work is done, or the hold is lost; then the work is dropped where it waits.
    ///
    /// The work is polled only while it is held. Work that blocks its thread goes on until it
    /// looks: let it ask [`is_held`](HoldView::is_held).
    ///
    /// # Errors
    ///
    /// Why the hold was lost, if it was before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it drops the work. The hold goes on.
    ///
    /// ```
    /// # use zookeeper_recipes_core::{Error, Recipe};
    /// # async fn write_report() {}
    /// # async fn example(recipe: &dyn Recipe) -> Result<(), Error> {
    /// let hold = recipe.acquire().await?;
    /// match hold.guard(write_report()).await {
    ///     Ok(()) => hold.release().await?,
    ///     Err(reason) => eprintln!("{reason}, so the work was stopped"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn guard<T>(&self, work: impl Future<Output = T>) -> Result<T, LossReason> {
        tokio::select! {
            biased;
            reason = self.lost() => Err(reason),
            done = work => Ok(done),
        }
    }

    /// Replaces the holder's znode by one with the same number and another label, in one
    /// transaction: the hold goes on as one of another kind, without a moment in between. A
    /// write lock becomes a read lock this way.
    ///
    /// `from` and `to` are the labels (see [`Contender::label`](crate::Contender::label)); `data`
    /// and `acl` are the new znode's. The fencing token stays: it is older than that of everyone
    /// behind, as the new znode's `czxid` would not be. The views of the hold end: take new ones.
    /// Whoever waits for the hold within the process
    /// ([`QueueOptions::local`](crate::QueueOptions::local)) waits for the kind that was, and so
    /// goes on to queue on the server. One request.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when its znode has not the label `from`, its rule does not
    /// [allow it](crate::Rule::may_be_replaced), or it has a number at the end of the count
    /// (2147483647), where the order is by age and a new znode would be the youngest;
    /// [`Error::Lost`] when the hold has been lost, [`Error::Refused`] when the server would not
    /// create the new znode, [`Error::SessionOver`]. After an error, what was held is released.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, what was held is released.
    #[doc(hidden)]
    pub async fn replace(
        mut self,
        from: &str,
        to: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<Hold, Error> {
        let Held { grant, turn, .. } = self.end().expect(REACHED);
        let replaced = grant.replace(from, to, data, acl).await;
        // Passed on at the end: the next one there must not be handed a hold of the new kind.
        drop(turn);
        Ok(Hold::new(replaced?, None))
    }

    /// Releases, and waits for the server's word.
    ///
    /// Its [views](Self::view) are lost before anything is sent. One request: the deletion of the
    /// holder's znode, together with others where many go at once in the session. When its outcome
    /// is unknown it is repeated until the server has answered or the lease has run out.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] at once when the hold is lost, so that what was done under it may not have
    /// been protected to the end; and when it is lost before the server's word comes. The znode is
    /// deleted in the background then. [`Error::SessionOver`] when the session ended before the
    /// server's word came. [`Error::Refused`] when the server would not delete the znode. In all
    /// these cases nothing more is to be done: the znode goes with the session at the latest.
    ///
    /// # Cancel safety
    ///
    /// Once polled, what is held is released whether or not one waits for it.
    pub async fn release(mut self) -> Result<(), Error> {
        let held = self.end().expect(REACHED);
        let ended = held.ended.clone();
        let Some(grant) = held.let_go() else {
            // Handed over within the process.
            return Ok(());
        };
        let released = grant.release().await;
        match &released {
            Err(Error::Lost { reason, .. }) => {
                ended.send_replace(Some(*reason));
            }
            Err(Error::SessionOver { reason, .. }) => {
                ended.send_replace(Some(LossReason::Session(*reason)));
            }
            _ => {}
        }
        released
    }

    /// Ends it for all views.
    fn end(&mut self) -> Option<Held> {
        let held = self.held.take()?;
        let reason = match self.view.state() {
            HoldState::Lost(reason) => reason,
            HoldState::Held | HoldState::Suspended => LossReason::Released,
        };
        held.ended.send_replace(Some(reason));
        Some(held)
    }
}

const REACHED: &str = "a hold that can be reached has not been released";

impl Held {
    /// What is to be released on the server, with the turn to pass on after that; `None` if the
    /// next one within the process has it.
    fn let_go(self) -> Option<Grant> {
        let Some(turn) = self.turn else {
            return Some(self.grant);
        };
        let (mut grant, kept) = turn.hand_over(self.grant)?;
        grant.owned.kept_until_gone = Some(kept);
        Some(grant)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // A grant that is dropped is released in the background.
        drop(self.end().and_then(Held::let_go));
    }
}

impl Deref for Hold {
    type Target = HoldView;

    fn deref(&self) -> &HoldView {
        &self.view
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Hold")
            .field("node_path", &self.node_path())
            .field("fencing_token", &self.fencing_token())
            .field("session_id", &self.session_id())
            .field("state", &self.state())
            .finish()
    }
}
