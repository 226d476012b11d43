//! What can be chosen about a read/write lock.

use zookeeper_recipes_core::{QueueOptions, recipe_options};

recipe_options! {
    /// Options of an [`RwLock`](crate::RwLock), for its readers and its writers.
    ///
    /// ```
    /// use zookeeper_recipes_rwlock::{AfterSessionLoss, RwLockOptions};
    ///
    /// let options = RwLockOptions::new()
    ///     .data("node-7")
    ///     .after_session_loss(AfterSessionLoss::Requeue);
    /// ```
    pub struct RwLockOptions = QueueOptions::new();
    strategy, name, data, acl, directories, after_session_loss, mark_release, max_hold
}
