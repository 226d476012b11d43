//! The leader's hold.

use std::ops::Deref;
use std::sync::Arc;

use zookeeper_recipes_core::{Error, Hold};

/// A [`Hold`] on an election: proof, as far as a process can have one, that it leads.
///
/// Everything a hold can do, it can: say how it stands ([`Hold::state`], [`Hold::lost`]), give the
/// [`fencing_token`](Hold::fencing_token), write under guard ([`Hold::transaction`]). Dropped, it
/// resigns in the background.
///
/// A clone of its hold is the leadership too, and keeps it until it is dropped itself, or until
/// one of them [resigns](Self::resign).
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

    /// The hold that it is, for code that works with any recipe's.
    pub fn into_hold(self) -> Hold {
        self.hold
    }

    /// Gives the leadership up, and waits for the server's word. The next candidate leads at once.
    ///
    /// It is [`Hold::release_all`], with its cost (one request), its errors, and its cancel safety:
    /// clones of the hold are lost, and once polled, it is given up whether or not one waits for
    /// it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the leadership had been lost before; otherwise as for
    /// [`Hold::release_all`].
    pub async fn resign(self) -> Result<(), Error> {
        self.hold.release_all().await
    }
}

impl Deref for Leadership {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.hold
    }
}
