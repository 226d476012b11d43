//! The lock without a queue.

use zookeeper_recipes_core::{
    InvalidInput, Session, SingleNode, SingleNodeOptions, delegate_recipe,
};

/// A lock that is one ephemeral znode: whoever creates it holds, all the others watch it.
///
/// What many people write first, here to be compared. It has no order, a release wakes every
/// waiter, and each of them then writes. See [`SingleNode`] for what else it cannot do.
///
/// # Requests
///
/// Acquire, uncontended: a create, and one more for the first acquisition of a session. Release: one request, a transaction of a check and a delete. A waiter sends a read
/// when it begins to wait and a create and a read after each release that it does not win.
///
/// # Znodes
///
/// The one at the path. At the root, or if a session may not create it there, beside the lock, the
/// guard of each session, named `_c_<uuid>-session-lock-2147483647`, until that session ends. What is missing above is created
/// as container znodes.
///
/// # Session loss
///
/// The holder's hold is [`Lost`](crate::HoldState::Lost); a waiter fails with
/// [`Error::SessionOver`](crate::Error::SessionOver).
///
/// # Cancel safety
///
/// Dropped at any moment, an attempt leaves no znode and no watch behind. A [`Hold`](crate::Hold) that is dropped is released in the background.
///
/// # Example
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_lock::{Recipe, Session, SingleNodeLock};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
/// let lock = SingleNodeLock::new(&session, "/locks/simple")?;
/// let hold = lock.acquire().await?;
/// assert_eq!(hold.node_path(), "/locks/simple");
/// hold.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SingleNodeLock {
    node: SingleNode,
}

impl SingleNodeLock {
    /// A lock that is the znode at `path`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's.
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<SingleNodeLock, InvalidInput> {
        SingleNodeLock::with_options(session, path, SingleNodeOptions::new())
    }

    /// A lock that is the znode at `path`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's, or an option makes no sense.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        options: SingleNodeOptions,
    ) -> Result<SingleNodeLock, InvalidInput> {
        let node = SingleNode::with_options(session, path, options)?;
        Ok(SingleNodeLock { node })
    }
}

delegate_recipe!(SingleNodeLock, node);
