//! The exclusive lock.

use std::time::Duration;

use zookeeper_recipes_core::{
    Error, Hold, InvalidInput, NodePath, Queue, QueueEntry, Session, delegate_recipe,
};

use crate::LockOptions;
use crate::rule::FirstInQueue;

/// An exclusive lock, FIFO over all processes.
///
/// A lock is made from a [`Session`] and a path. Clones are one lock: within the process they queue
/// in the order of their calls, behind one contender in ZooKeeper. Each hold has a znode and a token
/// of its own; a [`TaskMutex`](crate::TaskMutex) shares one hold among many tasks. Two locks that
/// are *made* with the same path are two contenders, even in one process.
///
/// # Not reentrant
///
/// If a task that holds the lock acquires it again, the task deadlocks.
/// [`acquire_timeout`](Self::acquire_timeout) bounds the wait, and an event warns at once
/// ([events](crate::common::docs::events)). Tasks that work under one hold share a
/// [view](Hold::view) of it.
///
/// # Znodes
///
/// Under the path, one ephemeral sequential znode for each contender:
/// `_c_<uuid>-lock-<number>`. If the path does not exist, it is created as a container znode.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_lock::{ExclusiveLock, LockOptions, RecipeExt, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let options = LockOptions::new().data("node-7");
/// let lock = ExclusiveLock::with_options(&session, "/locks/report", options)?;
///
/// let hold = lock.acquire_timeout(Duration::from_secs(5)).await?;
/// assert!(lock.try_acquire().await?.is_none());
/// assert_eq!(lock.contenders().await?[0].data, b"node-7");
/// hold.release().await?;
///
/// let report = lock.with(async |hold| format!("with token {}", hold.fencing_token())).await?;
/// # assert!(report.starts_with("with token "));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ExclusiveLock {
    queue: Queue,
}

impl ExclusiveLock {
    /// A lock at `path`, with the default options. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`].
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<ExclusiveLock, InvalidInput> {
        ExclusiveLock::with_options(session, path, LockOptions::new())
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
        options: LockOptions,
    ) -> Result<ExclusiveLock, InvalidInput> {
        let options = options.one_contender();
        let queue = Queue::with_options(session, path, FirstInQueue, options)?;
        Ok(ExclusiveLock { queue })
    }

    /// True if this is the only clone, and no task of the process has the lock or waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Waits until this contender holds the lock.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the lock is free: a create and a list | 2 | 1 | 0 |
    /// | the same from the third time on, if no other contender came in between: a create | 1 | 1 | 0 |
    /// | the same from the third time on, if one came in between: a create, then a list | 2 | 2 | 0 |
    /// | first use of the path | see [there](crate::Recipe#first-use-of-a-path) | | |
    /// | the lock is taken: a read of the own znode and one of the predecessor's | 2 more | 1 more | 2 |
    /// | the predecessor marks its release, or was alone before this contender | 0 more | 0 | |
    /// | the predecessor leaves without a marked release, and others were before it: a list | 1 more | 1 more | |
    /// | first acquisition of a session: a transaction; two at the first use of a path | 1 or 2 more | 1 or 2 more | |
    /// | another task of this process holds the lock | 0 until its turn | 0 | 0 |
    /// | its turn has come: a create and a list, which leave with the deletion of the znode before | 2 | 1 for all three | 0 |
    ///
    /// The number of the new znode shows if another contender came in between: see
    /// [the proof](crate::common::docs::handoff#coming-back-to-where-one-was-alone).
    ///
    /// A predecessor that did not wait does not mark its release before the next probe of its
    /// session, which comes within a tenth of the session timeout. Each release costs one request.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::acquire`](crate::Recipe::acquire).
    pub async fn acquire(&self) -> Result<Hold, Error> {
        self.queue.acquire().await
    }

    /// Waits until this contender holds the lock, for at most `timeout`.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire) | 1 to 3, and more to wait | 1 or 2, and more to wait | 0 or 2 |
    /// | the timeout elapses: a delete in the background | 1 more | 0 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// [`Error::DeadlineElapsed`] after `timeout`. The rest is that of [`acquire`](Self::acquire).
    ///
    /// ```
    /// use std::time::Duration;
    /// use zookeeper_recipes_lock::{Error, ExclusiveLock};
    ///
    /// # async fn example(lock: ExclusiveLock) -> Result<(), Error> {
    /// match lock.acquire_timeout(Duration::from_secs(5)).await {
    ///     Ok(hold) => hold.release().await?,
    ///     Err(error) if error.is_timeout() => println!("another process works on it"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.queue.acquire_timeout(timeout).await
    }

    /// Holds the lock if it is free; otherwise `None`, with nothing written.
    ///
    /// [`Error::Disconnected`] if no server answers.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | another task of this process has the lock | 0 | 0 | 0 |
    /// | another process has the lock: a list | 1 | 1 | 0 |
    /// | the lock is free: a list, and the rows of [`acquire`](Self::acquire) | 2 to 4 | 2 or 3 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`acquire`](Self::acquire).
    ///
    /// ```
    /// use zookeeper_recipes_lock::{Error, ExclusiveLock};
    ///
    /// # async fn example(lock: ExclusiveLock) -> Result<(), Error> {
    /// match lock.try_acquire().await? {
    ///     Some(hold) => hold.release().await?,
    ///     None => println!("{} contenders are before", lock.contenders().await?.len()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        self.queue.try_acquire().await
    }

    /// Lists the holder and the waiters, in the order of the queue.
    ///
    /// Tasks that wait on clones of one lock are one contender. While one of them holds, the others
    /// are not in the list.
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
        self.queue.contenders().await
    }

    /// The directory of the contenders' znodes. The holder's is [`HoldView::node_path`](crate::HoldView::node_path).
    pub fn path(&self) -> &NodePath {
        self.queue.path()
    }
}

delegate_recipe!(ExclusiveLock, queue);
