//! The lock without a queue: one znode that all contenders try to create.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::{
    Acl, AuthId, Backoff, BoxFuture, Directories, Error, Hold, InvalidInput, NamedZnode, NodePath,
    Permission, QueueEntry, Recipe, Session, Stat,
};

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

/// Options of a [`SingleNodeLock`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SingleNodeOptions {
    data: Option<Vec<u8>>,
    acl: Vec<Acl>,
    directories: Directories,
    name: Arc<str>,
    max_hold: Option<Duration>,
}

impl SingleNodeOptions {
    /// The defaults: the [owner](Session::owner) as data, an open access control list, container
    /// directories.
    pub fn new() -> SingleNodeOptions {
        SingleNodeOptions {
            data: None,
            acl: vec![Acl::new(Permission::ALL, AuthId::anyone())],
            directories: Directories::Container,
            name: Arc::default(),
            max_hold: None,
        }
    }

    /// The text in the znode's data that follows its owner's identity.
    ///
    /// The default is the [owner](Session::owner): `service@host:pid`.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> SingleNodeOptions {
        self.data = Some(data.into());
        self
    }

    /// The name of the lock in events, and a label of its metrics.
    ///
    /// The default is none. See [`docs::events`](crate::common::docs::events).
    pub fn name(mut self, name: impl Into<Arc<str>>) -> SingleNodeOptions {
        self.name = name.into();
        self
    }

    /// The access control list of the created znodes, directories included.
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> SingleNodeOptions {
        self.acl = acl.into();
        self
    }

    /// Ends each hold after this time, even if its work hangs. Must not be zero.
    ///
    /// The hold is then lost with [`LossReason::TimeLimit`](crate::LossReason::TimeLimit), and
    /// another contender holds. By default there is no limit. See
    /// [`QueueOptions::max_hold`](crate::common::QueueOptions::max_hold).
    pub fn max_hold(mut self, limit: Duration) -> SingleNodeOptions {
        self.max_hold = Some(limit);
        self
    }

    /// The kind of znode that missing directories are created as.
    pub fn directories(mut self, kind: Directories) -> SingleNodeOptions {
        self.directories = kind;
        self
    }
}

impl Default for SingleNodeOptions {
    fn default() -> SingleNodeOptions {
        SingleNodeOptions::new()
    }
}

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
        let path = NodePath::new(path.as_ref())?;
        // Each identity has this length.
        let identity = session.ensemble().identity().prefix();
        let data = [identity.as_bytes(), text(&options, session)].concat();
        session.check_znode(&path, &data, &options.acl, options.max_hold)?;
        Ok(SingleNodeLock {
            session: session.clone(),
            path,
            options,
        })
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
        let SingleNodeOptions {
            acl, directories, ..
        } = &self.options;
        let mut lapsed = Backoff::default();
        loop {
            let (znode, identity) = self.begin().await?;
            let data = self.data(&identity);
            let stat = znode.create_or_wait(&data, acl, *directories).await?;
            match self.hold(znode, stat).await? {
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
            let (znode, identity) = self.begin().await?;
            if znode.read().await?.is_some() {
                return Ok(None);
            }
            let SingleNodeOptions {
                acl, directories, ..
            } = &self.options;
            let data = self.data(&identity);
            match znode.create(&data, acl, *directories).await? {
                Some(stat) => self.hold(znode, stat).await,
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
        let znode = NamedZnode::begin(&self.session, &self.path, is_own).await?;
        Ok((znode, identity))
    }

    fn data(&self, identity: &str) -> Vec<u8> {
        [identity.as_bytes(), text(&self.options, &self.session)].concat()
    }

    /// Holds by a znode that exists, unless the lease has lapsed meanwhile.
    async fn hold(&self, znode: NamedZnode, stat: Stat) -> Result<Option<Hold>, Error> {
        let SingleNodeOptions { name, max_hold, .. } = &self.options;
        znode.hold("single_node", name, &stat, *max_hold).await
    }
}

/// The text that follows the identity in the data of a znode.
fn text<'a>(options: &'a SingleNodeOptions, session: &'a Session) -> &'a [u8] {
    let data = options.data.as_deref();
    data.unwrap_or_else(|| session.owner().as_bytes())
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
