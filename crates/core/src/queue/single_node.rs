//! The lock without a queue: one znode that all contenders try to create.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::backoff::Backoff;
use crate::contender::Identity;
use crate::error::Error;
use crate::events::Source;
use crate::events::attempt::Attempt;
use crate::hold::Hold;
use crate::hold::grant::Grant;
use crate::hold::own_znode::OwnNode;
use crate::hold::owned::Owned;
use crate::hold_state::FencingToken;
use crate::invalid_input::InvalidInput;
use crate::path::NodePath;
use crate::queue::directory::{
    Directories, MissingDirectory, UnknownCreates, refuse_missing_chroot,
};
use crate::queue::entries::entry;
use crate::recipe::{QueueEntry, Recipe, within};
use crate::server::acl::open_acl;
use crate::server::checks::check_acl;
use crate::server::ensemble::{Acl, CreateMode, Node, ServerSession, Stat};
use crate::server::error::{Refusal, ServerError};
use crate::session::handle::Session;
use crate::session::lease::Lease;
use crate::session::live::LiveSession;

/// A lock without a queue: all contenders create the same ephemeral znode.
///
/// The creator of the znode holds. The others watch the znode. When it is deleted, all of them
/// wake, and the quickest one creates it. Does not keep an order.
///
/// The znode's data begins with its owner's identity. If the reply to a create is lost, the owner
/// recognises its znode by this identity.
///
/// The znodes of all holders have the same name, so the server cannot tell them apart by it. The
/// session deletes a znode only if no earlier request of it can still delete the znode of the next
/// holder.
///
/// Does not protect a holder whose znode somebody deletes by hand. Until the holder notices, the
/// server accepts its guarded writes, and its release may delete the next holder's znode. The
/// fencing token still tells the two holders apart. A [`Queue`](crate::Queue) has none of these
/// limits.
///
/// [`acquire`](Self::acquire), [`try_acquire`](Self::try_acquire) and
/// [`contenders`](Self::contenders) list their costs. [`Hold::release`] lists the costs of a
/// release.
#[derive(Clone)]
pub struct SingleNode {
    session: Session,
    path: NodePath,
    options: SingleNodeOptions,
    source: Arc<Source>,
}

/// The options of a [`SingleNode`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SingleNodeOptions {
    data: Option<Vec<u8>>,
    acl: Vec<Acl>,
    directories: Directories,
    name: Arc<str>,
}

impl SingleNodeOptions {
    /// The defaults: the [owner](Session::owner) as data, an open access control list, container
    /// directories.
    pub fn new() -> SingleNodeOptions {
        SingleNodeOptions {
            data: None,
            acl: open_acl(),
            directories: Directories::Container,
            name: Arc::default(),
        }
    }

    /// The text in the znode's data that follows its owner's identity.
    ///
    /// By default the [owner](Session::owner): `service@host:pid`.
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> SingleNodeOptions {
        self.data = Some(data.into());
        self
    }

    /// The name of the recipe in events, and a label of its metrics.
    ///
    /// By default none. See [`docs::events`](crate::docs::events).
    pub fn name(mut self, name: impl Into<Arc<str>>) -> SingleNodeOptions {
        self.name = name.into();
        self
    }

    /// The access control list of the created znodes, directories included.
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> SingleNodeOptions {
        self.acl = acl.into();
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

impl SingleNode {
    /// A lock on the znode at `path`, with the default options. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the path is not a [`NodePath`].
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<SingleNode, InvalidInput> {
        SingleNode::with_options(session, path, SingleNodeOptions::new())
    }

    /// A lock on the znode at `path`, with these options. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the path is not a [`NodePath`], the access control list is empty, or a
    /// request with the path, the data and the access control list is longer than the servers
    /// accept: [`ConnectOptions::jute_maxbuffer`](crate::ConnectOptions::jute_maxbuffer).
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        mut options: SingleNodeOptions,
    ) -> Result<SingleNode, InvalidInput> {
        let path = NodePath::new(path.as_ref())?;
        let owner = || session.owner().as_bytes().to_vec();
        check_acl(&options.acl)?;
        let data = options.data.get_or_insert_with(owner);
        let limit = session.request_limit();
        limit.check_contender(path.as_str(), "", data, &options.acl)?;
        let source = Source {
            recipe: "single_node",
            name: options.name.clone(),
            path: path.clone(),
            leads: false,
        };
        Ok(SingleNode {
            session: session.clone(),
            path,
            options,
            source: Arc::new(source),
        })
    }

    /// Waits until a znode created now can be granted.
    async fn may_create(&self, live: &LiveSession) -> Result<(), ServerError> {
        let path = self.path.as_str();
        live.until_lease(path, Lease::may_grant_if_proven).await
    }

    /// Grants once the session is proven, if the connection broke meanwhile.
    async fn grant(
        &self,
        live: &LiveSession,
        claim: Claim,
        stat: &Stat,
    ) -> Result<Option<Grant>, Error> {
        let path = self.path.as_str();
        let proven = live.until_lease(path, Lease::may_grant).await;
        proven.map_err(|error| Error::at(path, live.id(), error))?;
        Ok(claim.grant(stat))
    }

    /// Creates the znode, unless another's znode stands there. Asks again if no answer comes.
    async fn create(
        &self,
        live: &Arc<LiveSession>,
        server: &dyn ServerSession,
        claim: &Claim,
    ) -> Result<Created, Error> {
        let failed = |error| Error::at(self.path.as_str(), live.id(), error);
        let mut data = claim.identity();
        data.extend(self.options.data.iter().flatten());
        let mut missing_again = Backoff::after(1, Duration::from_secs(1));
        let mut unknown = UnknownCreates::default();
        loop {
            let sent = live.now();
            let path = self.path.as_str();
            let create = server.create(path, &data, CreateMode::Ephemeral, &self.options.acl);
            let outcome = create.await;
            live.heard_of_create(&outcome);
            match outcome {
                Ok(created) => return Ok(Created::Own(created.stat)),
                Err(error) if error.is(Refusal::NodeExists) => {
                    return Ok(Created::Taken);
                }
                Err(error) if error.is(Refusal::NoNode) => {
                    self.create_parent(live, server).await?;
                    missing_again.wait().await;
                }
                Err(ServerError::OutcomeUnknown(_)) => {
                    // Read before another create, because that one would find this znode there.
                    match self.look(server, CaughtUp::First).await.map_err(failed)? {
                        Some((data, stat)) if claim.owned.node.is(&data) => {
                            live.heard_of_create(&Ok(()));
                            return Ok(Created::Own(stat));
                        }
                        Some(_) => return Ok(Created::Taken),
                        None => unknown.another(live, path, sent).await?,
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Reads the znode at the path, of any owner. Asks again if no answer comes.
    async fn look(
        &self,
        server: &dyn ServerSession,
        caught_up: CaughtUp,
    ) -> Result<Option<Node>, ServerError> {
        let path = self.path.as_str();
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        loop {
            let sync = (caught_up == CaughtUp::First).then(|| server.sync(path));
            let get = server.get(path);
            let found = async {
                if let Some(sync) = sync {
                    sync.await?;
                }
                get.await
            };
            match found.await {
                Ok(node) => return Ok(Some(node)),
                Err(error) if error.is(Refusal::NoNode) => return Ok(None),
                Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn create_parent(
        &self,
        live: &LiveSession,
        server: &dyn ServerSession,
    ) -> Result<(), Error> {
        let chroot = self.session.ensemble().chroot();
        let Some(parent) = self.path.parent() else {
            return Err(Error::MissingChroot {
                chroot: chroot.to_owned(),
            });
        };
        let missing = MissingDirectory {
            path: &parent,
            data: &[],
            kind: self.options.directories,
            acl: &self.options.acl,
            chroot,
        };
        missing.create(live, server).await
    }

    async fn acquire_in(&self, live: &Arc<LiveSession>, attempt: &Attempt) -> Result<Grant, Error> {
        let failed = |error| Error::at(self.path.as_str(), live.id(), error);
        let server = live.server().map_err(failed)?;
        let most = Duration::from_secs(1);
        // Other holders may come and go between the create and the read, a few times in a row.
        let may_happen = || Backoff::after(4, most);
        let (mut gone_again, mut backoff) = (may_happen(), Backoff::up_to(most));
        loop {
            self.may_create(live).await.map_err(failed)?;
            let claim = Claim::new(&self.session, live, &self.path);
            match self.create(live, &*server, &claim).await? {
                Created::Own(stat) => match self.grant(live, claim, &stat).await? {
                    Some(grant) => return Ok(grant),
                    // The lease lapsed in this moment, so the znode is deleted and the attempt
                    // begins again.
                    None => backoff.wait().await,
                },
                Created::Taken => {
                    claim.nothing_created();
                    // All waiters are equal: there is no queue behind the holder.
                    attempt.waits(self.path.name(), 1);
                    match server.get_and_watch(self.path.as_str()).await {
                        // After any event of the znode the next step is another create.
                        Ok((_, _, watch)) => {
                            watch.await;
                            attempt.woken();
                            gone_again = may_happen();
                        }
                        Err(error) if error.is(Refusal::NoNode) => gone_again.wait().await,
                        Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                        Err(error) => return Err(failed(error)),
                    }
                }
            }
        }
    }

    async fn try_acquire_in(&self, live: &Arc<LiveSession>) -> Result<Option<Grant>, Error> {
        let failed = |error| Error::at(self.path.as_str(), live.id(), error);
        let server = live.server().map_err(failed)?;
        if self
            .look(&*server, CaughtUp::OrNot)
            .await
            .map_err(failed)?
            .is_some()
        {
            return Ok(None);
        }
        self.may_create(live).await.map_err(failed)?;
        let claim = Claim::new(&self.session, live, &self.path);
        match self.create(live, &*server, &claim).await? {
            Created::Own(stat) => self.grant(live, claim, &stat).await,
            Created::Taken => {
                claim.nothing_created();
                Ok(None)
            }
        }
    }
}

/// How current the answer to a read must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaughtUp {
    First,
    OrNot,
}

enum Created {
    Own(Stat),
    Taken,
}

/// A znode that may have been created.
///
/// If it is dropped, it is deleted in the background.
struct Claim {
    owned: Owned,
    identity: Identity,
}

impl Claim {
    fn new(session: &Session, live: &Arc<LiveSession>, path: &NodePath) -> Claim {
        let identity = live.identity();
        let node = OwnNode::doubtful(live, path.as_str(), identity.prefix().as_bytes());
        Claim {
            owned: Owned::new(session, live, node),
            identity,
        }
    }

    fn identity(&self) -> Vec<u8> {
        self.identity.prefix().into_bytes()
    }

    fn nothing_created(mut self) {
        self.owned.settle();
    }

    fn grant(mut self, stat: &Stat) -> Option<Grant> {
        let token = FencingToken::from(stat.czxid);
        let lapses = self.owned.live.may_grant()?;
        self.owned.node = self.owned.node.clone().certain(stat.czxid);
        Some(Grant::new(self.owned, lapses, token, None))
    }
}

impl fmt::Debug for SingleNode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SingleNode")
            .field("path", &self.path)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl SingleNode {
    /// Waits until the znode is free, creates it, and holds.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the znode is free: a create | 1 | 1 | 0 |
    /// | the znode is taken: a read, and another create once the znode is gone | 2 more each time | 2 more each time | 1 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::acquire`].
    pub async fn acquire(&self) -> Result<Hold, Error> {
        let attempt = Attempt::begin(&self.source);
        attempt.acquires(self.acquire_by(&attempt)).await
    }

    async fn acquire_by(&self, attempt: &Attempt) -> Result<Hold, Error> {
        let live = self.session.live(self.path.as_str()).await?;
        let grant = live
            .during(self.path.as_str(), pin!(self.acquire_in(&live, attempt)))
            .await?;
        let record = attempt.acquired(grant.token);
        Ok(Hold::new(grant, None, record))
    }

    /// As [`acquire`](Self::acquire), for at most `timeout`.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::acquire_timeout`].
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        let attempt = Attempt::begin(&self.source);
        let within = within(timeout, &self.path, self.acquire_by(&attempt));
        attempt.acquires(within).await
    }

    /// Holds if the znode is free; otherwise `None`. Writes nothing if it is not free.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the znode is taken: a read | 1 | 1 | 0 |
    /// | the znode is free: a read, and an acquisition | 1 more | 1 more | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        let attempt = Attempt::begin(&self.source);
        let work = async {
            let live = self.session.live(self.path.as_str()).await?;
            let grant = live
                .during(self.path.as_str(), pin!(self.try_acquire_in(&live)))
                .await?;
            Ok(grant.map(|grant| {
                let record = attempt.acquired(grant.token);
                Hold::new(grant, None, record)
            }))
        };
        attempt.tries(work).await
    }

    /// The holder, if there is one. Does not list the waiters: they have no znodes.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read | 1 | 1 | 0 |
    /// | nobody holds, and there is a chroot: a read of it | 1 more | 1 more | 0 |
    ///
    /// # Errors, cancel safety
    ///
    /// Those of [`Recipe::contenders`].
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        let live = self.session.live(self.path.as_str()).await?;
        let failed = |error| Error::at(self.path.as_str(), live.id(), error);
        let look = async {
            let server = live.server().map_err(failed)?;
            let node = self.look(&*server, CaughtUp::OrNot).await.map_err(failed)?;
            match node {
                // The creator of the znode holds.
                Some(node) => Ok(vec![entry(0, self.path.name(), node, true)]),
                None => {
                    refuse_missing_chroot(&live, &*server, self.path.as_str()).await?;
                    Ok(Vec::new())
                }
            }
        };
        live.during(self.path.as_str(), pin!(look)).await
    }

    /// The path of the holder's znode.
    pub fn path(&self) -> &NodePath {
        &self.path
    }
}

impl Recipe for SingleNode {
    fn acquire(&self) -> BoxFuture<'_, Result<Hold, Error>> {
        Box::pin(self.acquire())
    }

    fn acquire_timeout(&self, timeout: Duration) -> BoxFuture<'_, Result<Hold, Error>> {
        Box::pin(self.acquire_timeout(timeout))
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
