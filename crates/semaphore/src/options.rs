//! What can be chosen about a semaphore.

use zookeeper_recipes_core::{QueueOptions, recipe_options};

recipe_options! {
    /// Options of a [`Semaphore`](crate::Semaphore).
    ///
    /// ```
    /// use zookeeper_recipes_semaphore::{Directories, SemaphoreOptions};
    ///
    /// // The number of permits outlasts a time in which nobody uses the semaphore.
    /// let options = SemaphoreOptions::new()
    ///     .data("node-7")
    ///     .directories(Directories::Persistent);
    /// ```
    pub struct SemaphoreOptions = QueueOptions::new();
    name, data, acl, directories, after_session_loss, max_hold
}
