//! The leadership, as the process that leads owns it, and a view of it for the work under it.

use std::ops::Deref;

use zookeeper_recipes_core::{Error, Hold, HoldView};

use crate::candidate::Candidate;

/// A leadership, until it is released, dropped or lost.
///
/// One place in the program owns a leadership. [`release`](Self::release) ends it, and a drop
/// releases it in the background. Tasks that work under the leadership, and do not decide when it
/// ends, share a [`term`](Self::term) of it. A leadership has the methods of its [`Hold`].
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

    /// A view of the leadership, for tasks that do not own it.
    pub fn term(&self) -> Term {
        Term::new(self.view(), self.candidate.clone())
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
    /// | the session reconnects: as at the beginning, and the removal of the old watches | 2 or 4 more | 1 or 2 more | 0 |
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again. The drop removes the watches.
    ///
    /// # Session loss
    ///
    /// The future does not resolve then: [`lost`](Hold::lost) does.
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

impl Deref for Leadership {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.hold
    }
}

/// A view of a leadership, for the work under it.
///
/// A term is cheap to clone, and has the methods of its [`HoldView`]. It does not keep the
/// leadership: after the release its state is [`Released`](crate::HoldState::Released).
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

impl Deref for Term {
    type Target = HoldView;

    fn deref(&self) -> &HoldView {
        &self.view
    }
}
