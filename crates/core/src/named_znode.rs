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
use crate::hold::own_znode::ZnodeOwner;
use crate::hold_state::FencingToken;
use crate::path::NodePath;
use crate::queue::directory::MissingDirectory;
use crate::queue::options::QueueOptions;
use crate::retry::{Backoff, retry};
use crate::server::ensemble::{CreateMode, Node, ServerSession, Stat};
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
        let znode = open.znodes.named(&named);
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
    pub async fn create(&self, data: &[u8]) -> Result<Option<Stat>, Error> {
        self.until_over(pin!(self.create_or_find(data))).await
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
    pub async fn create_or_wait(&self, data: &[u8]) -> Result<Stat, Error> {
        // Other holders may come and go between the create and the read, a few times in a row.
        let pauses = || (Backoff::default().skip_first(4), Backoff::default());
        let (mut gone, mut unanswered) = pauses();
        let create = pin!(async {
            loop {
                if let Some(stat) = self.create_or_find(data).await? {
                    return Ok(stat);
                }
                match self.server.get_and_watch(self.path.as_str()).await {
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
        self.until_over(create).await
    }

    /// Holds by the znode with this metadata, which [`create`](Self::create) has returned.
    ///
    /// `recipe` is for events and metrics. `None` if the lease has lapsed meanwhile, or if the
    /// servers have lost the znode with their data: the znode is then deleted in the background.
    ///
    /// # Errors
    ///
    /// [`Error::NoLease`], [`Error::Refused`] and [`Error::SessionOver`].
    pub async fn hold(self, recipe: &'static str, stat: &Stat) -> Result<Option<Hold>, Error> {
        // The connection may have broken since the create, and is not proven then.
        self.until_over(pin!(self.until_may_hold())).await?;
        if !self.named.seen_over.is_last(&self.server) {
            // Servers that have lost their data may have lost the znode.
            let found = self.until_over(pin!(self.find())).await?;
            if !matches!(found, Some((_, true))) {
                return Ok(None);
            }
        }
        let Some(epoch) = self.open.live.grant_epoch() else {
            return Ok(None);
        };
        let deadline = self.options.deadline(self.open.live.now());
        self.named.set_czxid(stat.czxid);
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

    async fn create_or_find(&self, data: &[u8]) -> Result<Option<Stat>, Error> {
        let (open, server, path) = (&self.open, &self.server, self.path.as_str());
        let znode = &self.znode_owner.znode;
        let parent = self.path.parent();
        let mut directory = parent.as_ref().map(|parent| {
            let known = open.znodes.handoff.take_known(parent);
            MissingDirectory::new(parent, None, &self.options, known.may_be_missing)
        });
        let mut pause_if_unknown = Backoff::default();
        loop {
            // A call that is dropped before there is a connection leaves no create behind.
            open.live.until_connected().await;
            self.until_may_hold().await?;
            // No answer came to an earlier create, whose future may be dropped.
            let may_exist = self.named.may_exist();
            let counted = znode.count(path, CreateMode::Ephemeral);
            // Unless the session is being left.
            let begun = counted.and_then(|()| znode.before_create(&self.named));
            begun.map_err(|error| self.failed(error))?;
            let sent = directory.as_ref().and_then(|it| it.send_create(server));
            self.named.seen_over.note(server);
            let (mode, acl) = (CreateMode::Ephemeral, &self.options.acl);
            let created = server.create(path, data, mode, acl).await;
            let is_refused = !matches!(created, Ok(_) | Err(ServerError::OutcomeUnknown(_)));
            if is_refused && !may_exist {
                znode.note_gone();
            }
            let was_missing = match &mut directory {
                Some(it) => it.was_missing(open, server, sent, &created).await?,
                None => false,
            };
            if was_missing {
                continue;
            }
            match created {
                Ok(created) => return Ok(Some(created.stat)),
                Err(error) if error.is_unknown() || may_exist && error.is(Refusal::NodeExists) => {
                    // Another create would be refused by the znode of this one.
                    match self.find().await? {
                        Some((stat, true)) => return Ok(Some(stat)),
                        None if error.is_unknown() => pause_if_unknown.wait().await,
                        _ => {
                            znode.note_gone();
                            return Ok(None);
                        }
                    }
                }
                Err(error) if error.is(Refusal::NodeExists) => return Ok(None),
                // It has no directory below the chroot.
                Err(error) if error.is(Refusal::NoNode) => return Err(open.live.missing_chroot()),
                Err(error) => return Err(Error::at_create(path, open.live.id, error)),
            }
        }
    }

    /// Looks for the znode until an answer comes.
    async fn find(&self) -> Result<Option<(Stat, bool)>, Error> {
        let find = || self.named.find(&self.server);
        let found = retry(ServerError::may_pass, find).await;
        found.map_err(|error| self.failed(error))
    }

    async fn until_over<T>(
        &self,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        self.open.live.until_over(self.path.as_str(), work).await
    }

    async fn until_may_hold(&self) -> Result<(), Error> {
        let live = &self.open.live;
        live.until_may_grant(self.path.as_str(), &mut None).await
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
