//! The read/write lock.

use std::time::Duration;

use zookeeper_recipes_core::{
    Error, Hold, InvalidInput, NodePath, Queue, QueueEntry, Session, delegate_recipe,
};

use crate::RwLockOptions;
use crate::hold::WriteHold;
use crate::rule::ReadOrWrite;

/// A lock that one writer holds, or any number of readers, FIFO over all processes.
///
/// A lock is made from a [`Session`] and a path. [`read`](Self::read) is its read lock, and
/// [`write`](Self::write) its write lock. A clone is cheap.
///
/// # Not reentrant
///
/// If a task that holds the lock as a writer acquires it again, or one that holds it as a reader
/// acquires it as a writer, the task deadlocks. So does a reader that reads again, if a writer
/// waits between the two. [`ReadLock::acquire_timeout`] and [`WriteLock::acquire_timeout`] bound
/// the wait, and an event warns at once
/// ([events](crate::common::docs::events)). Tasks that work under one hold share a
/// [view](Hold::view) of it.
///
/// # No upgrade
///
/// A reader cannot become a writer: two readers that both want to write would deadlock. Release the read lock, acquire the write lock, and read again, because another writer
/// may have held in between. Or acquire the write lock first, and
/// [`downgrade`](WriteHold::downgrade).
///
/// # Znodes
///
/// Under the path, one ephemeral sequential znode for each contender: `_c_<uuid>-__READ__<number>`
/// for a reader, `_c_<uuid>-__WRIT__<number>` for a writer. If the path does not exist, it is
/// created as a container znode.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_rwlock::{RwLock, RwLockOptions, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let options = RwLockOptions::new().data("node-7");
/// let lock = RwLock::with_options(&session, "/locks/catalogue", options)?;
///
/// let reading = lock.read().acquire_timeout(Duration::from_secs(5)).await?;
/// assert!(lock.read().try_acquire().await?.is_some());
/// assert!(lock.write().try_acquire().await?.is_none());
/// assert_eq!(lock.contenders().await?[0].data, b"node-7");
/// reading.release().await?;
///
/// let writing = lock.write().acquire().await?;
/// let reading = writing.downgrade().await?;
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
    /// A lock at `path`, with the default options. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`].
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<RwLock, InvalidInput> {
        RwLock::with_options(session, path, RwLockOptions::new())
    }

    /// A lock at `path`. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or an option has a value that cannot
    /// work.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        options: RwLockOptions,
    ) -> Result<RwLock, InvalidInput> {
        options.refuse(&["one_contender"], "a read/write lock")?;
        let read = Queue::with_options(session, path, ReadOrWrite::Read, options)?;
        let write = read.by(ReadOrWrite::Write)?;
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

    /// Lists the readers and the writers, holders included, in the order of the queue.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, then all their data in one read | 2 | 2 | 0 |
    /// | the queue is empty: the names | 1 | 1 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::contenders`](crate::Recipe::contenders).
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        self.read.queue.contenders().await
    }

    /// The directory of the contenders' znodes.
    pub fn path(&self) -> &NodePath {
        self.read.queue.path()
    }
}

/// An [`RwLock`] as a reader takes it: together with other readers, and with no writer.
///
/// Made by [`RwLock::read`].
///
/// ```
/// use zookeeper_recipes_rwlock::{ReadLock, RwLock, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
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

impl ReadLock {
    /// Waits until no writer is before this reader.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | no writer is before it: a create and a list | 2 | 1 | 0 |
    /// | alone in the queue from the third time on, and no other contender came in between: a create | 1 | 1 | 0 |
    /// | the same, but one came in between: a create, then a list | 2 | 2 | 0 |
    /// | first use of the path | see [there](crate::Recipe#first-use-of-a-path) | | |
    /// | a writer is before it: a read of the own znode and one of the last writer's | 2 more | 1 more | 2 |
    /// | that writer marks its release | 0 more | 0 | |
    /// | that writer leaves without a marked release: a list | 1 more | 1 more | |
    ///
    /// The number of the new znode shows if another contender came in between: see
    /// [the proof](crate::common::docs::handoff#coming-back-to-where-one-was-alone).
    ///
    /// A writer that did not wait does not mark its release before the next probe of its session,
    /// which comes within a tenth of the session timeout. Each release costs one request.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::acquire`](crate::Recipe::acquire).
    pub async fn acquire(&self) -> Result<Hold, Error> {
        self.queue.acquire().await
    }

    /// Waits until no writer is before this reader, for at most `timeout`.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire) | 1 or 2, and more to wait | 1 or 2, and more to wait | 0 or 2 |
    /// | the timeout elapses: a delete in the background | 1 more | 0 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// [`Error::DeadlineElapsed`] after `timeout`. The rest is that of [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.queue.acquire_timeout(timeout).await
    }

    /// Holds as a reader if no writer holds or waits; otherwise `None`, with nothing written.
    ///
    /// [`Error::Disconnected`] if no server answers.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a writer holds or waits: a list | 1 | 1 | 0 |
    /// | no writer: a list, and the rows of [`acquire`](Self::acquire) | 2 or 3 | 2 or 3 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        self.queue.try_acquire().await
    }
}

delegate_recipe!(ReadLock, queue);

/// An [`RwLock`] as a writer takes it: alone.
///
/// [`RwLock::write`] returns the write lock. Its methods yield a [`WriteHold`], which can be
/// [downgraded](WriteHold::downgrade). As a [`Recipe`](crate::Recipe), the write lock yields a
/// plain [`Hold`].
///
/// ```
/// use zookeeper_recipes_rwlock::{Hold, Recipe, RwLock, Session, WriteHold};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
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

impl WriteLock {
    /// Waits until no contender is before this writer.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the queue is empty: a create and a list | 2 | 1 | 0 |
    /// | the same from the third time on, if no other contender came in between: a create | 1 | 1 | 0 |
    /// | the same from the third time on, if one came in between: a create, then a list | 2 | 2 | 0 |
    /// | first use of the path | see [there](crate::Recipe#first-use-of-a-path) | | |
    /// | a contender is before it: a read of the own znode and one of the predecessor's | 2 more | 1 more | 2 |
    /// | the predecessor is a writer and marks its release, or a reader and was alone before this writer | 0 more | 0 | |
    /// | the predecessor leaves in any other way: a list | 1 more | 1 more | |
    /// | first writer of a session: a transaction | 1 more | 1 more | |
    ///
    /// The number of the new znode shows if another contender came in between: see
    /// [the proof](crate::common::docs::handoff#coming-back-to-where-one-was-alone).
    ///
    /// A writer that did not wait does not mark its release before the next probe of its session,
    /// which comes within a tenth of the session timeout. Each release costs one request.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`ReadLock::acquire`].
    pub async fn acquire(&self) -> Result<WriteHold, Error> {
        let hold = self.queue.acquire().await?;
        Ok(WriteHold::new(hold, &self.queue))
    }

    /// Waits until no contender is before this writer, for at most `timeout`.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire) | 1 to 3, and more to wait | 1 or 2, and more to wait | 0 or 2 |
    /// | the timeout elapses: a delete in the background | 1 more | 0 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// [`Error::DeadlineElapsed`] after `timeout`. The rest is that of [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<WriteHold, Error> {
        let hold = self.queue.acquire_timeout(timeout).await?;
        Ok(WriteHold::new(hold, &self.queue))
    }

    /// Holds as a writer if the queue is empty; otherwise `None`, with nothing written.
    ///
    /// [`Error::Disconnected`] if no server answers.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | another contender holds or waits: a list | 1 | 1 | 0 |
    /// | the queue is empty: a list, and the rows of [`acquire`](Self::acquire) | 2 to 4 | 2 or 3 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<WriteHold>, Error> {
        let hold = self.queue.try_acquire().await?;
        Ok(hold.map(|hold| WriteHold::new(hold, &self.queue)))
    }
}

delegate_recipe!(WriteLock, queue);
