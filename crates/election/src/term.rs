//! A view of a leadership, for the work under it.

use zookeeper_recipes_core::{Ended, Error, FencingToken, GuardedTransaction, HoldView};

use crate::candidate::Candidate;

/// A view of a leadership, for the work under it.
///
/// A term is cheap to clone. It does not keep the leadership: after the release its state is
/// [`Released`](crate::HoldState::Released).
#[derive(Clone, Debug)]
pub struct Term {
    view: HoldView,
    candidate: Candidate,
}

impl Term {
    pub(crate) fn new(view: HoldView, candidate: Candidate) -> Term {
        Term { view, candidate }
    }

    /// The id that the leader campaigned with.
    pub fn id(&self) -> &str {
        &self.candidate.id
    }

    /// The token by which a store distinguishes this leader from an older one.
    pub fn fencing_token(&self) -> FencingToken {
        self.view.fencing_token()
    }

    /// True if this candidate certainly still leads: see [`HoldView::is_held`]. The call sends
    /// nothing.
    pub fn is_held(&self) -> bool {
        self.view.is_held()
    }

    /// Resolves when the leadership is released or lost: see [`HoldView::ended`].
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub async fn ended(&self) -> Ended {
        self.view.ended().await
    }

    /// Begins a write to ZooKeeper that fails once the leadership is lost.
    ///
    /// Nothing is sent before the commit: see [`HoldView::transaction`].
    pub fn transaction(&self) -> GuardedTransaction {
        self.view.transaction()
    }

    /// The plain view, with the state, the znode and the time that remains.
    ///
    /// Code that works under the hold of any recipe takes it.
    pub fn view(&self) -> HoldView {
        self.view.clone()
    }

    /// Names the candidate that leads next, for [`run`](crate::LeaderElection::run) to resign.
    ///
    /// It does what [`LeaderElection::transfer_to`](crate::LeaderElection::transfer_to) does, and
    /// the server refuses it if this candidate no longer leads. The successor leads once this
    /// leadership is released.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, all their data, the directory, a transaction | 4 | 4 | 0 |
    ///
    /// # Errors
    ///
    /// Those of [`LeaderElection::transfer_to`](crate::LeaderElection::transfer_to), and
    /// [`Error::Lost`] if the leadership is lost. After any other error this candidate still leads.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the successor may be named or not.
    ///
    /// # Session loss
    ///
    /// The call fails with [`Error::Lost`] or [`Error::SessionOver`].
    pub async fn transfer_to(&self, id: &str) -> Result<(), Error> {
        self.candidate.name_successor(id, Some(&self.view)).await
    }

    /// Publishes a text of the leader, for all processes that ask who leads.
    ///
    /// They read the text in [`Leader::proclaimed`](crate::Leader::proclaimed). Each
    /// [watch](crate::LeaderElection::watch_leader) of the leader is notified. The text replaces an
    /// earlier one, and ends with the leadership.
    ///
    /// The text is in the data of the directory. So each waiting candidate gets a notification, at
    /// most one until its turn comes.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the directory, a transaction | 2 | 2 | 0 |
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if a request with the text is longer than the servers accept
    ///   (`ConnectOptions::jute_maxbuffer`), or the directory's data belongs to another program.
    /// * [`Error::Lost`] if the leadership is lost.
    /// * [`Error::Refused`], for example without the permission to write to the directory.
    ///
    /// If the error [is retryable](Error::is_retryable), for example because a server has too much
    /// to do, call again. If the work returns the error,
    /// [`run`](crate::LeaderElection::run) ends.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the text may be proclaimed or not.
    ///
    /// # Session loss
    ///
    /// The call fails with [`Error::Lost`] or [`Error::SessionOver`].
    pub async fn proclaim(&self, text: &str) -> Result<(), Error> {
        self.candidate.proclaim(text, &self.view).await
    }
}
