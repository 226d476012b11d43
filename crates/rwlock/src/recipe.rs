//! The read/write lock.

use std::time::Duration;

use zookeeper_recipes_core::{
    Error, InvalidInput, Queue, QueueOptions, Recipe, Session, delegate_recipe,
};

use crate::hold::WriteHold;
use crate::rule::{NoWriterBefore, NobodyBefore};

/// A lock that is held by one writer, or by any number of readers, first come, first served.
///
/// Made from a [`Session`] and a path; used through [`read`](Self::read) and
/// [`write`](Self::write), each of which is a [`Recipe`]; cheap to clone.
///
/// Not re-entrant: whoever holds it as a reader and acquires it as a writer waits for itself. Tasks
/// that work under one hold take a [view](crate::Hold::view) of it.
///
/// # No upgrade
///
/// A reader cannot become a writer without letting go first. It would have to wait until the other
/// readers have gone; were one of those to wish for the same, each would wait for the other for
/// ever. So release the read lock, acquire the write lock, and look again at what was read: another
/// writer may have been in between. Or begin as a writer and
/// [`downgrade`](WriteHold::downgrade).
///
/// # Requests
///
/// Acquire, uncontended: a create and a list, sent together, and for the first writer in a session
/// one more before; soon a create alone, where nobody else comes in between ([why that is
/// enough](crate::common::docs::handoff)). Release: a delete, or a writer's a transaction where
/// somebody may be waiting. Downgrade: one transaction. A waiter sends two reads when it begins to
/// wait, and nothing more when a writer that it waits for releases; a list when the one it waits on
/// has gone otherwise, unless that was a reader and the only one. A failed
/// [`try_acquire`](Recipe::try_acquire): a list.
///
/// # Znodes
///
/// Under the path, which is created as a container znode unless it is there: one ephemeral
/// sequential znode per contender, `_c_<uuid>-__READ__<number>` for a reader and
/// `_c_<uuid>-__WRIT__<number>` for a writer.
///
/// # Session loss
///
/// The holder's hold is [`Lost`](crate::HoldState::Lost); a waiter fails with
/// [`Error::SessionOver`], or queues anew where it was told to
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
/// use zookeeper_recipes_rwlock::{QueueOptions, Recipe, Session, RwLock};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
/// let options = QueueOptions::new().data("node-7");
/// let lock = RwLock::with_options(&session, "/locks/catalogue", options)?;
///
/// let reading = lock.read().acquire_timeout(Duration::from_secs(5)).await?;
/// assert_eq!(lock.write().contenders().await?[0].data, b"node-7");
/// reading.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RwLock {
    read: ReadLock,
    write: WriteLock,
}

impl RwLock {
    /// A lock at `path`, with the default options. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's.
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<RwLock, InvalidInput> {
        RwLock::with_options(session, path, QueueOptions::new())
    }

    /// A lock at `path`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's, or an option makes no sense:
    /// [`QueueOptions::local`] does not, since the readers of a process would exclude each other.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        options: QueueOptions,
    ) -> Result<RwLock, InvalidInput> {
        if let Some(handovers_in_a_row) = options.get_local() {
            let problem = "is for exclusive locks: readers of one process hold together";
            let value = handovers_in_a_row.to_string();
            return Err(InvalidInput::new(
                "queue within the process",
                value,
                problem,
            ));
        }
        let path = path.as_ref();
        let read = Queue::with_options(session, path, NoWriterBefore, options)?;
        let write = read.by(NobodyBefore);
        Ok(RwLock {
            read: ReadLock { queue: read },
            write: WriteLock { queue: write },
        })
    }

    /// The lock as a reader takes it.
    pub fn read(&self) -> &ReadLock {
        &self.read
    }

    /// The lock as a writer takes it.
    pub fn write(&self) -> &WriteLock {
        &self.write
    }
}

/// A [`RwLock`] as a reader takes it: together with other readers, and with no writer.
///
/// A [`Recipe`], whose [`contenders`](Recipe::contenders) are the readers and the writers. What it
/// costs and leaves, see [`RwLock`].
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_rwlock::{ReadLock, Recipe, Session, RwLock};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
/// let reader: ReadLock = RwLock::new(&session, "/locks/catalogue")?.read().clone();
/// let (one, another) = (reader.acquire().await?, reader.acquire().await?);
/// assert!(one.is_held() && another.is_held());
/// # one.release().await?;
/// # another.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReadLock {
    queue: Queue,
}

delegate_recipe!(ReadLock, queue);

/// A [`RwLock`] as a writer takes it: alone.
///
/// A [`Recipe`], whose [`contenders`](Recipe::contenders) are the readers and the writers. Its own
/// methods of the same names differ in what they yield, a hold that can be
/// [downgraded](WriteHold::downgrade). What it costs and leaves, see [`RwLock`].
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_rwlock::{Hold, Recipe, Session, RwLock, WriteHold};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
/// let lock = RwLock::new(&session, "/locks/catalogue")?;
/// let writing: WriteHold = lock.write().acquire().await?;
/// writing.release().await?;
///
/// let any: &dyn Recipe = lock.write();
/// let hold: Hold = any.acquire().await?;
/// hold.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WriteLock {
    queue: Queue,
}

delegate_recipe!(WriteLock, queue);

impl WriteLock {
    /// As [`Recipe::acquire`], for a hold that can be downgraded: waits until everybody before it
    /// has gone.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::acquire`].
    pub async fn acquire(&self) -> Result<WriteHold, Error> {
        let hold = self.queue.acquire().await?;
        Ok(WriteHold::new(hold, &self.queue))
    }

    /// As [`Recipe::acquire_timeout`], for a hold that can be downgraded.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::acquire_timeout`].
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<WriteHold, Error> {
        let hold = self.queue.acquire_timeout(timeout).await?;
        Ok(WriteHold::new(hold, &self.queue))
    }

    /// As [`Recipe::try_acquire`], for a hold that can be downgraded: `None` where anybody holds or
    /// waits.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Option<WriteHold>, Error> {
        let hold = self.queue.try_acquire().await?;
        Ok(hold.map(|hold| WriteHold::new(hold, &self.queue)))
    }
}
