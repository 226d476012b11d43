//! The options of an election.

use zookeeper_recipes_core::{QueueOptions, recipe_options};

recipe_options! {
    /// Options of a [`LeaderElection`](crate::LeaderElection).
    ///
    /// The data of a candidate's znode is its id, and cannot be chosen.
    ///
    /// ```
    /// use zookeeper_recipes_election::{AfterSessionLoss, ElectionOptions};
    ///
    /// let options = ElectionOptions::new().after_session_loss(AfterSessionLoss::Requeue);
    /// ```
    pub struct ElectionOptions = QueueOptions::new();
    name, acl, directories, after_session_loss, max_hold
}
