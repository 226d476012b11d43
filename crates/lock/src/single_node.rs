//! The lock without a queue.

use std::time::Duration;

use zookeeper_recipes_core::{
    Error, Hold, HoldView, InvalidInput, NodePath, QueueEntry, Recipe, Session, SingleNode,
    SingleNodeOptions, delegate_recipe,
};

/// A lock without a queue: the creator of one ephemeral znode holds it.
///
/// The simplest lock, for comparison with [`ExclusiveLock`](crate::ExclusiveLock). It has no order:
/// a newcomer can pass the waiters. A release wakes every waiter, and each of them then writes.
/// [`SingleNode`](crate::common::SingleNode) says what else it cannot promise.
///
/// # Znodes
///
/// The znode at the path, while the lock is held. Missing directories are created as container
/// znodes.
///
/// # Example
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions as SimulatedOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_lock::{Session, SingleNodeLock};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), SimulatedOptions::new()).await?;
/// let lock = SingleNodeLock::new(&session, "/locks/simple")?;
/// let hold = lock.acquire().await?;
/// assert_eq!(hold.node_path(), "/locks/simple");
/// assert!(lock.try_acquire().await?.is_none());
/// hold.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SingleNodeLock {
    node: SingleNode,
}

impl SingleNodeLock {
    /// A lock that is the znode at `path`, with the default options. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`].
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<SingleNodeLock, InvalidInput> {
        SingleNodeLock::with_options(session, path, SingleNodeOptions::new())
    }

    /// A lock that is the znode at `path`. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or an option has a value that cannot
    /// work.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        options: SingleNodeOptions,
    ) -> Result<SingleNodeLock, InvalidInput> {
        let node = SingleNode::with_options(session, path, options)?;
        Ok(SingleNodeLock { node })
    }

    /// Waits until this contender has created the znode.
    ///
    /// Has no deadline, and no place in a queue: a waiter for a busy lock may wait for ever.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the lock is free: a create | 1 | 1 | 0 |
    /// | the lock is taken: a refused create and a read, again after each release that another contender wins | 2 more each time | 2 more each time | 1 |
    /// | first acquisition of a session: a create of the guard | 1 more | 1 more | 0 |
    ///
    /// The release is one transaction, and wakes all waiters.
    ///
    /// # Errors
    ///
    /// * The attempt failed: [`Error::Refused`] (for example, no permission).
    /// * The session is over: [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no znode of the attempt and no watch remain: the session deletes
    /// the znode in the background.
    ///
    /// # Session loss
    ///
    /// If the session expires during the wait, the call fails with [`Error::SessionOver`].
    pub async fn acquire(&self) -> Result<Hold, Error> {
        self.node.acquire().await
    }

    /// Waits until this contender has created the znode, for at most `timeout`.
    ///
    /// The timeout bounds everything: the wait for a connection, the server's answers, the lock.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire) | 1 or 2, and more to wait | 1 or 2, and more to wait | 0 or 1 |
    ///
    /// # Errors
    ///
    /// [`Error::DeadlineElapsed`] after `timeout`, and the errors of [`acquire`](Self::acquire).
    ///
    /// # Cancel safety, session loss
    ///
    /// Those of [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.node.acquire_timeout(timeout).await
    }

    /// Holds the lock if the znode does not exist; otherwise `None`, with nothing written.
    ///
    /// While no server answers, it waits for one: bound it with `tokio::time::timeout`.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the lock is taken: a read | 1 | 1 | 0 |
    /// | the lock is free: a read, and the rows of [`acquire`](Self::acquire) | 2 or 3 | 2 or 3 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        self.node.try_acquire().await
    }

    /// Reads the holder, if there is one. Does not list the waiters: they have no znode.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], [`Error::MissingChroot`], [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// Leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// Fails with [`Error::SessionOver`] if the session expires before the server answers.
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        self.node.contenders().await
    }

    /// Runs the work under the lock, until it is done or the lock is lost.
    ///
    /// Acquires the lock before, and releases it after. Does not stop work that blocks its thread:
    /// see [`Hold::guard`].
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire), and the release | 2 or 3, and more to wait | 2 or 3, and more to wait | 0 or 1 |
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Self::acquire) and [`Hold::release`], and [`Error::Lost`] if the lock
    /// was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped, and the lock is released in the background.
    ///
    /// # Session loss
    ///
    /// During the wait as for [`acquire`](Self::acquire). During the work: [`Error::Lost`].
    pub async fn with<T, F>(&self, work: impl FnOnce(HoldView) -> F) -> Result<T, Error>
    where
        F: Future<Output = T>,
    {
        let recipe: &dyn Recipe = self;
        recipe.with(work).await
    }

    /// The path of the holder's znode.
    pub fn path(&self) -> &NodePath {
        self.node.path()
    }
}

delegate_recipe!(SingleNodeLock, node);
