//! A membership of this process, and the task that keeps it.

use std::fmt;

use futures_util::future::FutureExt;
use tokio::sync::{oneshot, watch};
use zookeeper_recipes_core::{Backoff, Error, Hold, HoldView, NodePath};

use crate::own_member::{IfTaken, OwnMember};

/// A membership of this process, until it leaves or is dropped.
///
/// A task of the session keeps the membership. If the member's znode is lost, the task joins again:
/// after the session has expired, in the next session. Until another member of the same name is
/// gone, this one waits.
///
/// A drop leaves the group in the background. [`leave`](Self::leave) waits for the server.
#[must_use = "if unused, the member leaves at once"]
pub struct Membership {
    path: NodePath,
    held: watch::Receiver<Option<HoldView>>,
    leave: oneshot::Sender<oneshot::Sender<Result<(), Error>>>,
}

impl Membership {
    /// Starts the task that keeps the membership.
    pub(crate) fn start(member: OwnMember, hold: Hold) -> Membership {
        let (shown, held) = watch::channel(Some(hold.view()));
        let (leave, asked_to_leave) = oneshot::channel();
        let path = member.path.clone();
        let ensemble = member.session.ensemble().clone();
        let task = keep(member, hold, shown, asked_to_leave);
        tokio::spawn(ensemble.task(task.boxed()));
        Membership { path, held, leave }
    }

    /// The name of the member.
    pub fn name(&self) -> &str {
        self.path.name()
    }

    /// True if this process is certainly a member. Looks at the clock, and sends nothing.
    ///
    /// False from the loss of the member's znode until the task has joined again.
    pub fn is_joined(&self) -> bool {
        let held = self.held.borrow();
        held.as_ref().is_some_and(HoldView::is_held)
    }

    /// A receiver of the member's present hold. `None` while this process is not a member.
    ///
    /// Each join has a hold of its own, with a larger fencing token.
    pub fn holds(&self) -> watch::Receiver<Option<HoldView>> {
        self.held.clone()
    }

    /// Leaves the group, and waits for the server's answer.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the deletion of the member's znode | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::SessionOver`] if the membership was lost before the answer, and
    /// [`Error::Refused`] if the server does not delete the znode. The member is gone with its
    /// session at the latest.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the member leaves all the same.
    pub async fn leave(self) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        // An error means that the session is closed, and that the member has left with it.
        if self.leave.send(answer).is_err() {
            return Ok(());
        }
        answered.await.unwrap_or(Ok(()))
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Membership")
            .field("path", &self.path)
            .field("is_joined", &self.is_joined())
            .finish_non_exhaustive()
    }
}

/// Keeps the membership until it is to end, or the session is closed.
async fn keep(
    member: OwnMember,
    mut hold: Hold,
    shown: watch::Sender<Option<HoldView>>,
    mut asked_to_leave: oneshot::Receiver<oneshot::Sender<Result<(), Error>>>,
) {
    loop {
        let reason = tokio::select! {
            biased;
            asked = &mut asked_to_leave => {
                shown.send_replace(None);
                member.turn.end();
                match asked {
                    // An error means that nobody waits for the answer.
                    Ok(answer) => drop(answer.send(hold.release().await)),
                    Err(_) => drop(hold),
                }
                return;
            }
            reason = hold.lost() => reason,
        };
        // Below, a closed session ends the membership with an event of its own.
        if !reason.is_own_close() {
            tracing::warn!(target: "zookeeper_recipes", path = %member.path, %reason, "membership lost");
        }
        shown.send_replace(None);
        drop(hold);
        hold = tokio::select! {
            biased;
            asked = &mut asked_to_leave => {
                if let Ok(answer) = asked {
                    let _ = answer.send(Ok(()));
                }
                return;
            }
            joined = join_again(&member) => match joined {
                Some(hold) => hold,
                None => return,
            },
        };
        tracing::info!(target: "zookeeper_recipes", path = %member.path, "membership joined again");
        shown.send_replace(Some(hold.view()));
    }
}

/// Joins again, until another try would not help: the session is closed.
async fn join_again(member: &OwnMember) -> Option<Hold> {
    let mut backoff = Backoff::default();
    loop {
        match member.join(IfTaken::Wait).await {
            Ok(hold) => return Some(hold),
            Err(error @ Error::NoSession { .. }) => {
                tracing::debug!(target: "zookeeper_recipes", path = %member.path, %error, "not a member any more");
                return None;
            }
            Err(error) => {
                tracing::warn!(target: "zookeeper_recipes", path = %member.path, %error, "joining again");
                backoff.wait().await;
            }
        }
    }
}
