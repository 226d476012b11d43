//! The exclusive lock.

use zookeeper_recipes_core::{InvalidInput, Queue, QueueOptions, Session, delegate_recipe};

use crate::rule::FirstInQueue;

/// A lock that is held by one at a time, first come, first served.
///
/// Made from a [`Session`] and a path; used through [`Recipe`](crate::Recipe). Clones are one lock
/// and queue within the process, in the order of their calls, behind one contender in ZooKeeper.
/// Two locks *made* with the same path are two contenders, also within one process.
///
/// Not re-entrant: acquiring it again while it is held waits for its release. Tasks
/// that work under one hold take a [view](crate::Hold::view) of it.
///
/// # Requests
///
/// Acquire, uncontended: a create and a list, sent together, and the first time in a session one
/// more before; soon a create alone, where nobody else comes in between ([why that is
/// enough](crate::common::docs::handoff)). Release: a delete, or a transaction where somebody may be
/// waiting. A waiter sends two reads when it begins to wait, and nothing more when the holder
/// releases; a list when the one before it, and not the only one, has gone otherwise. A failed
/// [`try_acquire`](crate::Recipe::try_acquire): a list, or nothing where another task of the
/// process has the lock.
///
/// # Znodes
///
/// Under the path, which is created as a container znode unless it is there: one ephemeral
/// sequential znode per contender, `_c_<uuid>-lock-<number>`.
///
/// # Session loss
///
/// The holder's hold is [`Lost`](crate::HoldState::Lost); a waiter fails with
/// [`Error::SessionOver`](crate::Error::SessionOver), or queues anew where it was told to
/// ([`QueueOptions::after_session_loss`]).
///
/// # Cancel safety
///
/// Dropped at any moment, an attempt leaves no znode and no watch behind, and its place in the
/// queue is lost. A [`Hold`](crate::Hold) that is dropped is released in the background.
///
/// # Example
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use std::time::Duration;
/// use zookeeper_recipes_lock::{ExclusiveLock, QueueOptions, Recipe, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
/// let options = QueueOptions::new().data("node-7");
/// let lock = ExclusiveLock::with_options(&session, "/locks/report", options)?;
///
/// let hold = lock.acquire_timeout(Duration::from_secs(5)).await?;
/// assert!(lock.try_acquire().await?.is_none());
/// assert_eq!(lock.contenders().await?[0].data, b"node-7");
/// hold.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ExclusiveLock {
    queue: Queue,
}

impl ExclusiveLock {
    /// A lock at `path`, with the default options. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's.
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<ExclusiveLock, InvalidInput> {
        ExclusiveLock::with_options(session, path, QueueOptions::new())
    }

    /// A lock at `path`. Nothing is sent yet.
    ///
    /// Unless [`QueueOptions::local`] says otherwise, the lock goes to the next process after each
    /// release, however many tasks of this one wait.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's, or an option makes no sense.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        options: QueueOptions,
    ) -> Result<ExclusiveLock, InvalidInput> {
        let options = options.local_by_default(0);
        let queue = Queue::with_options(session, path, FirstInQueue, options)?;
        Ok(ExclusiveLock { queue })
    }
}

delegate_recipe!(ExclusiveLock, queue);
