//! The lock without a queue: one znode that all contenders try to create.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use zookeeper_recipes_core::ensemble::{Node, Reply, ServerSession};
use zookeeper_recipes_core::{
    Acl, AuthId, BoxFuture, Directories, Error, Hold, InvalidInput, NodePath, OwnedZnode,
    Permission, QueueEntry, Recipe, Refusal, Removal, ServerError, Session, Stat,
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
/// * Its tasks do not hand the lock on within the process, and its session cannot be [left to another
///   process](Session::detach).
///
/// # Not reentrant
///
/// If a task that holds the lock acquires it again, the task waits behind itself, for ever.
/// [`acquire_timeout`](Self::acquire_timeout) is its way out. An event warns after the session
/// timeout ([events](crate::common::docs::events)).
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
    at_most: Option<Duration>,
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
            at_most: None,
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
    /// [`QueueOptions::at_most`](crate::common::QueueOptions::at_most).
    pub fn at_most(mut self, limit: Duration) -> SingleNodeOptions {
        self.at_most = Some(limit);
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

/// The znode of one attempt, and of its hold.
#[derive(Debug)]
struct OneZnode {
    path: NodePath,
    /// What the data of the znode begins with.
    identity: String,
}

impl OneZnode {
    fn is(&self, data: &[u8]) -> bool {
        data.starts_with(self.identity.as_bytes())
    }
}

impl Removal for OneZnode {
    fn path(&self) -> &str {
        self.path.as_str()
    }

    fn remove<'a>(&'a self, server: &'a dyn ServerSession, is_held: bool) -> Reply<'a, ()> {
        let removed = async move {
            if !is_held {
                // An earlier deletion may still be under way over an earlier connection. Once a
                // write is committed over this one, the server has applied it or will refuse it.
                server.prove().await?;
                let (data, _) = server.get(self.path.as_str()).await?;
                if !self.is(&data) {
                    return Ok(());
                }
            }
            server.delete(self.path.as_str()).await
        };
        removed.boxed()
    }
}

/// Pauses that double up to a second.
struct Pause {
    next: Duration,
    /// How many times it does not pause before that.
    free: u32,
}

impl Pause {
    fn new() -> Pause {
        Pause::after(0)
    }

    fn after(free: u32) -> Pause {
        let next = Duration::from_millis(20);
        Pause { next, free }
    }

    async fn wait(&mut self) {
        if let Some(left) = self.free.checked_sub(1) {
            self.free = left;
            return;
        }
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(Duration::from_secs(1));
    }
}

/// What the server answers before a read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// A write of the session is committed. It has applied each earlier one by then, or never will.
    Commit,
    Nothing,
}

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
        // This part is as long as each identity.
        let mut data = session.ensemble().identity().prefix().into_bytes();
        data.extend(text(&options, session));
        session.check_znode(&path, &data, &options.acl)?;
        if options.at_most == Some(Duration::ZERO) {
            let problem = "must not be zero";
            return Err(InvalidInput::new("time limit of a hold", "0", problem));
        }
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
        let mut pause = Pause::new();
        loop {
            let (znode, one) = self.begin().await?;
            let stat = znode.during(self.create_or_wait(&znode, &one)).await?;
            match self.hold(znode, stat).await? {
                Some(hold) => return Ok(hold),
                // The lease has lapsed in this moment, and the znode is deleted.
                None => pause.wait().await,
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
            let (znode, one) = self.begin().await?;
            let created = async {
                match self.look(&znode, After::Nothing).await? {
                    Some(_) => Ok(None),
                    None => self.create(&znode, &one).await,
                }
            };
            match znode.during(created).await? {
                Some(stat) => self.hold(znode, stat).await,
                None => Ok(None),
            }
        });
        self.session.promptly(&self.path, attempt).await
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
        let (znode, one) = self.begin().await?;
        let look = async {
            let Some((data, stat)) = self.look(&znode, After::Nothing).await? else {
                znode.refuse_missing_chroot().await?;
                return Ok(Vec::new());
            };
            let text = match data.starts_with(IDENTITY) {
                // The identity of each holder is as long as this one.
                true => data.get(one.identity.len()..).unwrap_or_default(),
                false => &data,
            };
            let text = text.to_vec();
            let mut entry = QueueEntry::new(0, self.path.name(), (text, stat), true);
            entry.data = data;
            Ok(vec![entry])
        };
        znode.during(look).await
    }

    /// The path of the holder's znode.
    pub fn path(&self) -> &NodePath {
        &self.path
    }
}

impl SingleNodeLock {
    /// The znode of an attempt that has created nothing yet.
    async fn begin(&self) -> Result<(OwnedZnode, Arc<OneZnode>), Error> {
        let one = Arc::new(OneZnode {
            path: self.path.clone(),
            identity: self.session.ensemble().identity().prefix(),
        });
        let znode = OwnedZnode::begin(&self.session, one.clone()).await?;
        Ok((znode, one))
    }

    /// Creates the znode as soon as no other holder's is there.
    async fn create_or_wait(&self, znode: &OwnedZnode, one: &OneZnode) -> Result<Stat, Error> {
        // Other holders may come and go between the create and the read, a few times in a row.
        let pauses = || (Pause::after(4), Pause::new());
        let (mut gone, mut unanswered) = pauses();
        loop {
            if let Some(stat) = self.create(znode, one).await? {
                return Ok(stat);
            }
            match znode.server().get_and_watch(self.path.as_str()).await {
                // After any event of the znode the next step is another create.
                Ok((_, _, watch)) => {
                    znode.waits(watch).await;
                    (gone, unanswered) = pauses();
                }
                Err(error) if error.is(Refusal::NoNode) => gone.wait().await,
                Err(ServerError::OutcomeUnknown(_)) => unanswered.wait().await,
                Err(error) => return Err(znode.failed(error)),
            }
        }
    }

    /// Creates the znode. `None` if another holder's is there. The call asks again if no answer
    /// comes.
    async fn create(&self, znode: &OwnedZnode, one: &OneZnode) -> Result<Option<Stat>, Error> {
        let failed = |error| znode.failed(error);
        let mut data = one.identity.clone().into_bytes();
        data.extend(text(&self.options, &self.session));
        znode.until_may_hold().await.map_err(failed)?;
        let mut missing_again = Pause::after(1);
        loop {
            match znode.create(&data, &self.options.acl).await {
                Ok(created) => return Ok(Some(created.stat)),
                Err(error) if error.is(Refusal::NoNode) => {
                    znode.refused();
                    self.create_parent(znode).await?;
                    missing_again.wait().await;
                }
                Err(ServerError::OutcomeUnknown(_)) => {
                    // Read before another create, because that one would find this znode there.
                    match self.look(znode, After::Commit).await? {
                        Some((data, stat)) if one.is(&data) => return Ok(Some(stat)),
                        Some(_) => break,
                        None => znode.before_another_create().await?,
                    }
                }
                Err(error) if error.is(Refusal::NodeExists) => break,
                Err(error) => {
                    znode.refused();
                    return Err(failed(error));
                }
            }
        }
        znode.refused();
        Ok(None)
    }

    async fn create_parent(&self, znode: &OwnedZnode) -> Result<(), Error> {
        let Some(parent) = self.path.parent() else {
            return Err(Error::MissingChroot {
                chroot: self.session.ensemble().chroot().to_owned(),
            });
        };
        let SingleNodeOptions {
            directories, acl, ..
        } = &self.options;
        znode.create_directory(&parent, *directories, acl).await
    }

    /// Reads the znode at the path, of any owner. Asks again if no answer comes.
    async fn look(&self, znode: &OwnedZnode, after: After) -> Result<Option<Node>, Error> {
        let (server, path) = (znode.server(), self.path.as_str());
        let mut pause = Pause::new();
        loop {
            let found = async {
                if after == After::Commit {
                    server.prove().await?;
                }
                server.get(path).await
            };
            match found.await {
                Ok(node) => return Ok(Some(node)),
                Err(error) if error.is(Refusal::NoNode) => return Ok(None),
                Err(ServerError::OutcomeUnknown(_)) => pause.wait().await,
                Err(error) => return Err(znode.failed(error)),
            }
        }
    }

    /// Holds by a znode that exists, unless the lease has lapsed meanwhile.
    async fn hold(&self, znode: OwnedZnode, stat: Stat) -> Result<Option<Hold>, Error> {
        // The connection may have broken since the create, and is not proven then.
        let may_hold = async {
            let may_hold = znode.until_may_hold().await;
            may_hold.map_err(|error| znode.failed(error))
        };
        znode.during(may_hold).await?;
        let SingleNodeOptions { name, at_most, .. } = &self.options;
        Ok(znode.hold("single_node", name, &stat, *at_most)?)
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
