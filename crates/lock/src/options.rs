//! What can be chosen about an exclusive lock.

use zookeeper_recipes_core::{QueueOptions, recipe_options};

recipe_options! {
    /// Options of an [`ExclusiveLock`](crate::ExclusiveLock).
    ///
    /// ```
    /// use zookeeper_recipes_lock::{AfterSessionLoss, LockOptions};
    ///
    /// let options = LockOptions::new()
    ///     .data("node-7")
    ///     .after_session_loss(AfterSessionLoss::Requeue);
    /// ```
    pub struct LockOptions = QueueOptions::new().one_contender();
    strategy, name, data, acl, directories, after_session_loss, mark_release, max_hold,
    entries
}
