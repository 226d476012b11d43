//! What is known of requests that the servers may not support.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use zookeeper_recipes_connection::Avoided;

/// What is known of requests that the servers may not support. Kept from one ZooKeeper session to
/// the next: a clone shares it.
#[derive(Clone, Default)]
pub(crate) struct Unsupported {
    /// The create of a container.
    pub(crate) containers: Avoided,
    /// True once a server has answered a create.
    pub(crate) creates: Arc<AtomicBool>,
}
