//! The turn within the process, as the hold knows it.

use crate::hold::grant::Grant;
use crate::hold::owned::KeptUntilGone;
use crate::hold::standing::Standing;

/// The place of a hold in a queue within its process. Dropped, the turn passes on.
pub(crate) trait Turn: Send + Sync {
    /// Tells the queue which hold has the turn.
    fn held_by(&self, standing: Standing);

    /// Gives the grant to the next waiter of the process. Returns the grant, with what is to be
    /// dropped once its znode has gone, if the grant goes back to the server instead.
    fn hand_over(self: Box<Self>, grant: Grant) -> Option<(Grant, KeptUntilGone)>;
}
