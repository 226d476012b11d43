//! The leader's hold.

use std::ops::Deref;
use zookeeper_recipes_core::{Error, Hold, HoldView};

use crate::candidate::Candidate;

/// A leader's [`Hold`].
///
/// Has all methods of a [`Hold`], such as [`lost`](HoldView::lost),
/// [`fencing_token`](HoldView::fencing_token) and [`transaction`](HoldView::transaction). If it is
/// dropped, it is released in the background. Tasks that work under the leadership, and do not
/// decide when it ends, share a [`term`](Self::term) of it.
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
        Term {
            view: self.hold.view(),
            candidate: self.candidate.clone(),
        }
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
}

impl Deref for Leadership {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.hold
    }
}

impl From<Leadership> for Hold {
    fn from(leadership: Leadership) -> Hold {
        leadership.into_hold()
    }
}

/// A view of a leadership, for the work under it.
///
/// Cheap to clone. Does not keep the leadership: after the release its state is
/// [`Lost`](crate::HoldState::Lost) with [`LossReason::Released`](crate::LossReason::Released).
#[derive(Clone, Debug)]
pub struct Term {
    view: HoldView,
    candidate: Candidate,
}

impl Term {
    /// The id that the leader campaigned with.
    pub fn id(&self) -> &str {
        &self.candidate.id
    }
}

impl Deref for Term {
    type Target = HoldView;

    fn deref(&self) -> &HoldView {
        &self.view
    }
}

impl Term {
    /// Hands over to the candidate with this id: [`run`](crate::LeaderElection::run) drops the
    /// work, and resigns.
    ///
    /// As [`LeaderElection::transfer_to`](crate::LeaderElection::transfer_to), by the leader
    /// itself: the server refuses it if this candidate no longer leads. The successor leads once
    /// this leadership is released.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, all their data, the directory, a transaction | 4 | 4 | 0 |
    ///
    /// # Errors
    ///
    /// Those of [`LeaderElection::transfer_to`](crate::LeaderElection::transfer_to), and
    /// [`Error::Lost`] if the leadership is lost. It still leads after any other error.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the successor is named or not.
    pub async fn transfer_to(&self, id: &str) -> Result<(), Error> {
        self.candidate.name_successor(id, Some(&self.view)).await
    }

    /// Publishes a text of the leader, for all processes that ask who leads.
    ///
    /// They read the text in [`Leader::proclaimed`](crate::Leader::proclaimed). A watch or an
    /// observer yields the leader anew. The text replaces an earlier one, and ends with the
    /// leadership.
    ///
    /// The data of the directory holds the text. So each waiting candidate gets a notification, at
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
    /// # Cancel safety
    ///
    /// If the future is dropped, the text is proclaimed or not.
    pub async fn proclaim(&self, text: &str) -> Result<(), Error> {
        self.candidate.proclaim(text, &self.view).await
    }
}

impl Leadership {
    /// Resolves when this leader should resign for another candidate.
    ///
    /// It should if a [successor](crate::LeaderElection::transfer_to) is named and campaigns, or if
    /// this candidate is on [standby](crate::LeaderElection::standby) and another candidate
    /// campaigns. Does not resign: the caller does. [`run`](crate::LeaderElection::run) does so.
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
    /// May be dropped and called again. Dropping removes the watches.
    ///
    /// # Session loss
    ///
    /// Does not resolve then: [`lost`](crate::HoldView::lost) does.
    pub async fn asked_to_resign(&self) {
        self.candidate.until_asked(&self.hold).await;
    }

    /// Names the candidate that leads next. [Release](Self::release) the leadership then.
    ///
    /// # Costs, errors, cancel safety
    ///
    /// Those of [`Term::transfer_to`].
    pub async fn transfer_to(&self, id: &str) -> Result<(), Error> {
        self.term().transfer_to(id).await
    }

    /// Publishes a text of the leader, for all processes that ask who leads.
    ///
    /// # Costs, errors, cancel safety
    ///
    /// Those of [`Term::proclaim`].
    pub async fn proclaim(&self, text: &str) -> Result<(), Error> {
        self.term().proclaim(text).await
    }
}
