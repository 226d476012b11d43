//! A znode of a recipe without a queue: the recipe chooses its whole name.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;

use tokio::time::Instant;
use tracing::Span;

use crate::error::Error;
use crate::events::RecipeInfo;
use crate::events::hold::HoldRecord;
use crate::hold::Hold;
use crate::hold::grant::Terms;
use crate::hold::named::Named;
use crate::hold::open_session::OpenSession;
use crate::hold::own_znode::{CreateOutcome, ZnodeOwner};
use crate::hold_state::FencingToken;
use crate::path::NodePath;
use crate::queue::directory::MissingDirectory;
use crate::queue::options::QueueOptions;
use crate::retry::{Backoff, retry};
use crate::server::ensemble::{Node, ServerSession, Stat};
use crate::server::error::{Refusal, ServerError, if_there};
use crate::session::handle::Session;

/// A znode whose whole name the recipe chooses, in one ZooKeeper session.
///
/// For a recipe without a queue: its contenders create a znode of the same name. The recipe says
/// how to distinguish its znode from another contender's in the same session. Core does the rest:
/// the create, the wait for the other holder, the lease, the loss watch, the [`Hold`] and the
/// deletion.
///
/// If a `NamedZnode` is dropped, its znode is deleted in the background, unless none exists.
///
/// The server cannot distinguish such a holder from the next one by the path. So the hold has no
/// [guarded writes](crate::HoldView::transaction).
pub struct NamedZnode {
    open: Arc<OpenSession>,
    server: Arc<ServerSession>,
    named: Arc<Named>,
    znode_owner: ZnodeOwner,
    path: NodePath,
    options: QueueOptions,
    owner: Arc<str>,
    began: Instant,
}

impl NamedZnode {
    /// Waits for a ZooKeeper session, and begins a znode in it. The call sends nothing.
    ///
    /// Of the options, the access control list and the directories are those of the znode, and the
    /// name and [`max_hold`](QueueOptions::max_hold) those of its hold. `is_own` is true for the data
    /// and the metadata of this znode. It is asked only about a znode of the same session.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`] if no further ZooKeeper session will be opened.
    /// [`Error::InvalidInput`] as [`QueueOptions::check_znode`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing remains.
    pub async fn begin(
        session: &Session,
        path: &NodePath,
        options: &QueueOptions,
        is_own: impl Fn(&[u8], &Stat) -> bool + Send + Sync + 'static,
    ) -> Result<NamedZnode, Error> {
        options.check_znode(session, path, &[])?;
        let open = session.until_open(path.as_str()).await?;
        let server = open.live.server();
        let server = server.map_err(|error| Error::at(path.as_str(), open.live.id, error))?;
        let named = Arc::new(Named::new(path.as_str(), Box::new(is_own)));
        let znode = open.znodes.named(named.clone());
        Ok(NamedZnode {
            znode_owner: ZnodeOwner::new(session.session_use(), znode),
            open,
            server,
            named,
            path: path.clone(),
            options: options.clone(),
            owner: session.owner().into(),
            began: Instant::now(),
        })
    }

    /// The error of an attempt whose request failed.
    pub fn failed(&self, error: ServerError) -> Error {
        Error::at(self.path.as_str(), self.open.live.id, error)
    }

    /// Reads the znode at the path, of any owner, until an answer comes.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] and [`Error::SessionOver`].
    pub async fn read(&self) -> Result<Option<Node>, Error> {
        let read = retry(ServerError::is_unknown, || {
            self.server.get(self.path.as_str())
        });
        let read = pin!(async { if_there(read.await).map_err(|error| self.failed(error)) });
        self.until_over(read).await
    }

    /// Refuses a chroot that does not exist, by one read, or none if there is no chroot.
    ///
    /// # Errors
    ///
    /// [`Error::MissingChroot`], and [`Error::SessionOver`].
    pub async fn refuse_missing_chroot(&self) -> Result<(), Error> {
        let path = self.path.as_str();
        let refuse = pin!(self.open.live.refuse_missing_chroot(&self.server, path));
        self.until_over(refuse).await
    }

    /// Creates the znode, which is ephemeral, and its missing directories.
    ///
    /// The result is `None` if another contender's znode is there. The call waits first until the
    /// lease allows a hold, so that the holder of a lapsed lease bars nobody. If no answer comes,
    /// it looks for the znode before it creates it again.
    ///
    /// # Errors
    ///
    /// * [`Error::SessionOver`] if the session is over.
    /// * [`Error::NoLease`] if the servers answer too late for a lease.
    /// * [`Error::MissingChroot`].
    /// * [`Error::Refused`] if the server refuses a request.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the znode may exist: the next call finds it, and a drop of the
    /// `NamedZnode` deletes it. The same is true after an error.
    pub async fn create(&mut self, data: &[u8]) -> Result<Option<Stat>, Error> {
        let (open, path) = (self.open.clone(), self.path.clone());
        // Boxed: the callers would keep room for it twice.
        let mut create = Box::pin(self.create_or_find(data));
        open.live.until_over(path.as_str(), create.as_mut()).await
    }

    /// Creates the znode as soon as no other contender's znode is there.
    ///
    /// If the same task holds already, an event warns: see [`docs::events`](crate::docs::events).
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create).
    ///
    /// # Cancel safety
    ///
    /// That of [`create`](Self::create).
    pub async fn create_or_wait(&mut self, data: &[u8]) -> Result<Stat, Error> {
        // Other holders may come and go between the create and the read, a few times in a row.
        let pauses = || (Backoff::default().skip_first(4), Backoff::default());
        let (mut gone, mut unanswered) = pauses();
        let (open, path) = (self.open.clone(), self.path.clone());
        let create = pin!(async {
            loop {
                if let Some(stat) = Box::pin(self.create_or_find(data)).await? {
                    return Ok(stat);
                }
                match self.server.get_and_keep_watch(self.path.as_str()).await {
                    // After any event of the znode the next step is another create.
                    Ok((_, stat, watch)) => {
                        if stat.ephemeral_owner == self.open.live.id.0 {
                            let path = self.path.as_str();
                            self.open.warn_of_own_wait(path, path);
                        }
                        watch.await;
                        (gone, unanswered) = pauses();
                    }
                    Err(error) if error.is(Refusal::NoNode) => gone.wait().await,
                    Err(ServerError::OutcomeUnknown(_)) => unanswered.wait().await,
                    Err(error) => return Err(self.failed(error)),
                }
            }
        });
        open.live.until_over(path.as_str(), create).await
    }

    /// Holds by the znode with this metadata, which [`create`](Self::create) has returned.
    ///
    /// `recipe` is for events and metrics. `None` if the lease has lapsed meanwhile, or if the
    /// servers have lost the znode with their data: the znode is then deleted in the background.
    ///
    /// # Errors
    ///
    /// [`Error::NoLease`], [`Error::Refused`] and [`Error::SessionOver`].
    pub async fn hold(mut self, recipe: &'static str, stat: &Stat) -> Result<Option<Hold>, Error> {
        if !self.exists_by_proof().await? {
            return Ok(None);
        }
        let Some(epoch) = self.open.live.grant_epoch() else {
            return Ok(None);
        };
        let deadline = self.options.deadline(self.open.live.now());
        self.named.begin_hold(stat.czxid);
        let token = FencingToken::from(stat.czxid);
        let info = RecipeInfo::new(recipe, self.options.name, self.path, self.owner);
        let (caller, waited) = (Span::current(), self.began.elapsed());
        let terms = Terms {
            token,
            epoch,
            deadline,
            rule: None,
        };
        let record = HoldRecord::begin(Arc::new(info), &caller, token, waited);
        let hold = Hold::begin(self.znode_owner, &self.open, terms, record, None);
        Ok(Some(hold))
    }

    /// Waits until the lease allows a hold. True if the znode exists then.
    async fn exists_by_proof(&mut self) -> Result<bool, Error> {
        let (open, path) = (self.open.clone(), self.path.as_str());
        let prove = pin!(async {
            // The connection may have broken since the create, and is not proven then.
            open.live.until_may_grant(path, &mut None).await?;
            if !self.server.has_reconnected_since(self.named.seen_over()) {
                return Ok(true);
            }
            // Servers that have lost their data may have lost the znode.
            let found = Box::pin(self.znode_owner.find()).await?;
            Ok(matches!(found, CreateOutcome::Created { .. }))
        });
        open.live.until_over(path, prove).await
    }

    async fn create_or_find(&mut self, data: &[u8]) -> Result<Option<Stat>, Error> {
        let (open, server) = (&self.open, &self.server);
        let parent = self.path.parent();
        let mut directory = parent.as_ref().map(|parent| {
            let known = open.znodes.handoff.take_known(parent);
            MissingDirectory::new(parent, None, &self.options, known.may_be_missing)
        });
        let mut pause_if_unknown = Backoff::default();
        loop {
            // A call that is dropped before there is a connection leaves no create behind.
            open.live.until_connected().await;
            let path = self.path.as_str();
            open.live.until_may_grant(path, &mut None).await?;
            if let Some(directory) = &mut directory {
                directory.send_create(server);
            }
            let (owner, acl) = (&mut self.znode_owner, self.options.get_acl());
            let create = owner.create(server, || path.to_owned(), data, acl.into(), || ());
            let (outcome, ()) = create.await?;
            match (outcome, &mut directory) {
                (CreateOutcome::Created { stat, .. }, directory) => {
                    if let Some(directory) = directory {
                        directory.note_exists(open).await;
                    }
                    return Ok(Some(stat));
                }
                (CreateOutcome::NotCreated, _) => Box::pin(pause_if_unknown.wait()).await,
                (CreateOutcome::Taken, _) => return Ok(None),
                (CreateOutcome::MissingDirectory, Some(directory)) => {
                    Box::pin(directory.note_missing(open, server)).await?;
                }
                // It has no directory below the chroot.
                (CreateOutcome::MissingDirectory, None) => return Err(open.live.missing_chroot()),
            }
        }
    }

    async fn until_over<T>(
        &self,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        self.open.live.until_over(self.path.as_str(), work).await
    }
}

impl fmt::Debug for NamedZnode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NamedZnode")
            .field("path", &self.path)
            .field("session_id", &self.open.live.id)
            .finish_non_exhaustive()
    }
}
