//! The leader's hold.

use std::ops::Deref;
use std::sync::Arc;

use zookeeper_recipes_core::{Error, Hold, HoldView};

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

    /// A view of the leadership, for tasks that do not own it.
    pub fn term(&self) -> Term {
        Term {
            view: self.hold.view(),
            id: self.id.clone(),
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
    /// Once polled, the leadership is released whether or not the caller waits.
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
