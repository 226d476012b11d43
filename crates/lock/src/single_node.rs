//! The lock without a queue: one znode that all contenders try to create.

use std::pin::pin;
use std::time::Duration;

use zookeeper_recipes_core::{
    Backoff, BoxFuture, Error, Hold, InvalidInput, NamedZnode, NodePath, QueueEntry, Recipe,
    Session, Stat,
};

use crate::SingleNodeOptions;

/// A lock without a queue: the creator of one ephemeral znode holds it.
///
/// The simplest lock, for comparison with [`ExclusiveLock`](crate::ExclusiveLock). It has no order:
/// a newcomer can pass the waiters. A release wakes every waiter, and each of them then writes.
///
/// The znodes of all holders have the same name, and the server cannot distinguish them by it. Each
/// holder writes an identity into its znode. It recognises its znode by the identity if the reply
/// to a create is lost, and before it repeats a deletion. What the lock cannot do:
///
/// * It does not protect a holder whose znode somebody deletes by hand. Until the holder notices,
///   its release may delete the next holder's znode. The fencing token distinguishes the two
///   holders.
/// * Its holds have no [guarded writes](crate::HoldView::transaction): [`Error::InvalidInput`].
/// * Its tasks do not queue within the process.
///
/// # Not reentrant
///
/// If a task that holds the lock acquires it again, the task deadlocks.
/// [`acquire_timeout`](Self::acquire_timeout) bounds the wait, and an event warns at once
/// ([events](crate::common::docs::events)).
///
/// # Znodes
///
/// The znode at the path, while the lock is held. Missing directories are created as container
/// znodes.
///
/// # Example
///
/// ```
/// use zookeeper_recipes_lock::{Session, SingleNodeLock};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
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
    session: Session,
    path: NodePath,
    options: SingleNodeOptions,
}

/// The recipe in events and metrics.
const RECIPE: &str = "single_node";

/// What each identity begins with.
const IDENTITY: &[u8] = b"_c_";

impl SingleNodeLock {
    /// A lock that is the znode at `path`, with the default options. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`].
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<SingleNodeLock, InvalidInput> {
        SingleNodeLock::with_options(session, path, SingleNodeOptions::new())
    }

    /// A lock that is the znode at `path`. The call sends nothing.
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
        let unused = [
            "strategy",
            "after_session_loss",
            "mark_release",
            "one_contender",
        ];
        options.refuse(&unused, "a single-node lock")?;
        let lock = SingleNodeLock {
            session: session.clone(),
            path: NodePath::new(path.as_ref())?,
            options: options.with_owner(session),
        };
        // Each identity has this length.
        let data = lock.data(&session.ensemble().identity().prefix());
        lock.options.check_znode(session, &lock.path, &data)?;
        Ok(lock)
    }

    /// Waits until this contender has created the znode.
    ///
    /// The wait has no deadline, and no place in a queue: a waiter for a busy lock may wait for
    /// ever.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the lock is free: a create | 1 | 1 | 0 |
    /// | the lock is taken: a refused create and a read, again after each release that another contender wins | 2 more each time | 2 more each time | 1 |
    /// | the session of the holder reconnects: its znode, and the removal of its old watch | 2 | 1 | 0 |
    ///
    /// The release is one request, and wakes all waiters.
    ///
    /// # Errors
    ///
    /// * The attempt failed: [`Error::Refused`] (for example, no permission), [`Error::NoLease`].
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
        let mut lapsed = Backoff::default();
        loop {
            let (mut znode, identity) = self.begin().await?;
            let stat = znode.create_or_wait(&self.data(&identity)).await?;
            match znode.hold(RECIPE, &stat).await? {
                Some(hold) => return Ok(hold),
                // The lease has lapsed in this moment, and the znode is deleted.
                None => lapsed.wait().await,
            }
        }
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
        Recipe::acquire_timeout(self, timeout).await
    }

    /// Holds the lock if the znode does not exist; otherwise `None`, with nothing written.
    ///
    /// [`Error::Disconnected`] if no server answers.
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
        let attempt = pin!(async {
            let (mut znode, identity) = self.begin().await?;
            if znode.read().await?.is_some() {
                return Ok(None);
            }
            match znode.create(&self.data(&identity)).await? {
                Some(stat) => znode.hold(RECIPE, &stat).await,
                None => Ok(None),
            }
        });
        self.session.unless_disconnected(&self.path, attempt).await
    }

    /// Reads the holder, if there is one. The answer does not list the waiters: they have no znode.
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
    /// A dropped future leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// The call fails with [`Error::SessionOver`] if the session expires before the server answers.
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        let (znode, identity) = self.begin().await?;
        let Some((data, stat)) = znode.read().await? else {
            znode.refuse_missing_chroot().await?;
            return Ok(Vec::new());
        };
        let text = match data.starts_with(IDENTITY) {
            // The identity of each holder is as long as this one.
            true => data.get(identity.len()..).unwrap_or_default(),
            false => &data,
        };
        let text = text.to_vec();
        let mut entry = QueueEntry::new(0, self.path.name(), (text, stat), true);
        entry.data = data;
        Ok(vec![entry])
    }

    /// The path of the holder's znode.
    pub fn path(&self) -> &NodePath {
        &self.path
    }
}

impl SingleNodeLock {
    /// The znode of an attempt that has created nothing yet, and the identity that its data begins
    /// with.
    async fn begin(&self) -> Result<(NamedZnode, String), Error> {
        let identity = self.session.ensemble().identity().prefix();
        let own = identity.clone();
        let is_own = move |data: &[u8], _: &Stat| data.starts_with(own.as_bytes());
        let znode = NamedZnode::begin(&self.session, &self.path, &self.options, is_own).await?;
        Ok((znode, identity))
    }

    fn data(&self, identity: &str) -> Vec<u8> {
        [identity.as_bytes(), self.options.get_data()].concat()
    }
}

impl Recipe for SingleNodeLock {
    fn acquire(&self) -> BoxFuture<'_, Result<Hold, Error>> {
        Box::pin(self.acquire())
    }

    fn try_acquire(&self) -> BoxFuture<'_, Result<Option<Hold>, Error>> {
        Box::pin(self.try_acquire())
    }

    fn contenders(&self) -> BoxFuture<'_, Result<Vec<QueueEntry>, Error>> {
        Box::pin(self.contenders())
    }

    fn path(&self) -> &NodePath {
        self.path()
    }

    fn session(&self) -> &Session {
        &self.session
    }
}
