//! The leadership, as the process that leads owns it.

use zookeeper_recipes_core::{Error, FencingToken, GuardedTransaction, Hold, HoldView, LossReason};

use crate::candidate::Candidate;
use crate::term::Term;

/// A leadership, until it is released, dropped or lost.
///
/// One place in the program owns a leadership. [`release`](Self::release) ends it, and a drop
/// releases it in the background. Tasks that work under the leadership, and do not decide when it
/// ends, share a [`term`](Self::term) of it.
#[derive(Debug)]
#[must_use = "if unused, the leadership is released at once"]
pub struct Leadership {
    hold: Hold,
    candidate: Candidate,
}

impl Leadership {
    pub(crate) fn new(hold: Hold, candidate: Candidate) -> Leadership {
        Leadership { hold, candidate }
    }

    /// The id that the leader campaigned with.
    pub fn id(&self) -> &str {
        &self.candidate.id
    }

    /// The path of the leader's znode.
    pub fn node_path(&self) -> &str {
        self.hold.node_path()
    }

    /// The token by which a store distinguishes this leader from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.hold.fencing_token()
    }

    /// True if this candidate certainly still leads: see [`HoldView::is_held`]. The call sends
    /// nothing.
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// Resolves when the leadership is lost: see [`Hold::lost`].
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub async fn lost(&self) -> LossReason {
        self.hold.lost().await
    }

    /// Begins a write to ZooKeeper that fails once the leadership is lost.
    ///
    /// Nothing is sent before the commit: see [`HoldView::transaction`].
    pub fn transaction(&self) -> GuardedTransaction {
        self.hold.transaction()
    }

    /// Runs the work until it is done, or until the leadership is lost: see [`Hold::run_until_lost`].
    ///
    /// # Errors
    ///
    /// The reason of the loss, if the leadership is lost before the work is done.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped. The leadership stays held.
    pub async fn run_until_lost<T>(&self, work: impl Future<Output = T>) -> Result<T, LossReason> {
        self.hold.run_until_lost(work).await
    }

    /// A view of the leadership, for tasks that do not own it.
    pub fn term(&self) -> Term {
        Term::new(self.view(), self.candidate.clone())
    }

    /// The plain view, with the state, the session and the time that remains.
    ///
    /// Code that works under the hold of any recipe takes it.
    pub fn view(&self) -> HoldView {
        self.hold.view()
    }

    /// The plain [`Hold`], for code that takes the hold of any recipe.
    pub fn into_hold(self) -> Hold {
        self.hold
    }

    /// Resigns, and waits for the server's answer. The next candidate leads at once.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a delete | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// Those of [`Hold::release`]; for example [`Error::Lost`] if the leadership was lost before.
    ///
    /// # Cancel safety
    ///
    /// Once the future is polled, the leadership is released even if the future is dropped.
    pub async fn release(self) -> Result<(), Error> {
        self.hold.release().await
    }

    /// Resolves when this leader should resign for another candidate.
    ///
    /// There are two reasons. A [successor](crate::LeaderElection::transfer_to) is named and
    /// campaigns, or this candidate is on [standby](crate::LeaderElection::standby) and another
    /// candidate campaigns. This method does not resign: the caller does, or
    /// [`run`](crate::LeaderElection::run).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read of the directory | 1 | 1 | 1 |
    /// | on standby, or a successor is named: the same, and the names | 2 | 2 | 2 |
    /// | then, each candidate that comes or goes: both again | 2 more | 2 more | 2 |
    /// | the directory's data changes: as at the beginning | 1 or 2 more | 1 or 2 more | 1 or 2 |
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again. The drop removes the watches.
    ///
    /// # Session loss
    ///
    /// The future does not resolve then: [`lost`](Self::lost) does.
    pub async fn asked_to_resign(&self) {
        let leader = self.hold.view();
        self.candidate.until_asked_to_resign(&leader).await;
    }

    /// Names the candidate that leads next. The caller then [releases](Self::release) the
    /// leadership.
    ///
    /// # Costs, errors, cancel safety, session loss
    ///
    /// Those of [`Term::transfer_to`].
    pub async fn transfer_to(&self, id: &str) -> Result<(), Error> {
        self.term().transfer_to(id).await
    }

    /// Publishes a text of the leader, for all processes that ask who leads.
    ///
    /// # Costs, errors, cancel safety, session loss
    ///
    /// Those of [`Term::proclaim`].
    pub async fn proclaim(&self, text: &str) -> Result<(), Error> {
        self.term().proclaim(text).await
    }
}
