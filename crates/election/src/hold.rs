//! The leader's hold.

use std::ops::Deref;
use std::sync::Arc;

use zookeeper_recipes_core::{Error, Hold, HoldView};

/// A [`Hold`] on an election: proof, as far as a process can have one, that it leads.
///
/// Everything a hold can do, it can: say how it stands ([`HoldView::state`], [`HoldView::lost`]), give
/// the [`fencing_token`](HoldView::fencing_token), write under guard ([`HoldView::transaction`]). Dropped, it
/// resigns in the background.
///
/// Tasks that work under the leadership, and do not decide when it ends, take a
/// [`term`](Self::term) of it.
#[derive(Debug)]
#[must_use = "if unused, the leadership is given up at once"]
pub struct Leadership {
    hold: Hold,
    id: Arc<str>,
}

impl Leadership {
    pub(crate) fn new(hold: Hold, id: Arc<str>) -> Leadership {
        Leadership { hold, id }
    }

    /// The id that the leader campaigned with.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it can tell, for tasks that do not own it.
    pub fn term(&self) -> Term {
        Term {
            view: self.hold.view(),
            id: self.id.clone(),
        }
    }

    /// The hold that it is, for code that works with any recipe's.
    pub fn into_hold(self) -> Hold {
        self.hold
    }

    /// Gives the leadership up, and waits for the server's word. The next candidate leads at once.
    ///
    /// It is [`Hold::release`], with its cost (one request), its errors, and its cancel safety: once
    /// polled, it is given up whether or not one waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the leadership had been lost before; otherwise as for
    /// [`Hold::release`].
    pub async fn resign(self) -> Result<(), Error> {
        self.hold.release().await
    }
}

impl Deref for Leadership {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.hold
    }
}

/// A term of leadership, as the work under it sees it: whether it lasts, and its token.
///
/// Cheap to clone. Does not keep the leadership: once that has been given up, its term is
/// [`Lost`](zookeeper_recipes_core::HoldState::Lost) with
/// [`LossReason::Released`](zookeeper_recipes_core::LossReason::Released).
#[derive(Clone, Debug)]
pub struct Term {
    view: HoldView,
    id: Arc<str>,
}

impl Term {
    /// The id that the leader campaigned with.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Deref for Term {
    type Target = HoldView;

    fn deref(&self) -> &HoldView {
        &self.view
    }
}
