//! The turn of a hold in the local queue, as the hold sees it.

use crate::hold::grant::Grant;
use crate::hold::owned::KeptUntilGone;
use crate::hold::standing::Standing;

/// The place of a hold in a queue within its process.
///
/// If it is dropped, the turn passes on.
pub(crate) trait Turn: Send + Sync {
    /// Tells the queue which hold has the turn.
    fn held_by(&self, standing: Standing);

    /// Gives the grant to the next waiter of the process.
    ///
    /// If the grant goes back to the server instead, returns the grant, and a value to drop once
    /// the grant's znode is deleted.
    fn hand_over(self: Box<Self>, grant: Grant) -> Option<(Grant, KeptUntilGone)>;
}
