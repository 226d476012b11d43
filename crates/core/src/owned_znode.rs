//! A znode of a recipe that is not a queue.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;

use crate::error::Error;
use crate::events::Source;
use crate::events::hold::HoldRecord;
use crate::hold::grant::Grant;
use crate::hold::open_session::OpenSession;
use crate::hold::own_znode::Owned;
use crate::hold::{Hold, Removal};
use crate::hold_state::FencingToken;
use crate::invalid_input::InvalidInput;
use crate::path::NodePath;
use crate::queue::directory::{
    Directories, MissingDirectory, UnknownCreates, refuse_missing_chroot,
};
use crate::queue::wait::{OwnWait, WITHOUT_ZNODE};
use crate::server::checks::{check_acl, check_time_limit};
use crate::server::ensemble::{Acl, CreateMode, Created, ServerSession, SessionId, Stat};
use crate::server::error::ServerError;
use crate::session::handle::Session;
use crate::sync::lock;

/// A znode that a recipe without a queue creates, or has created, in one ZooKeeper session.
///
/// For a recipe in which all contenders create a znode of the same name. The recipe
/// [creates](Self::create) the znode, and distinguishes its own from another client's. Core does
/// the rest: the lease, the loss watch, the [`Hold`], and the deletion in the background.
///
/// A drop deletes the znode in the background by [`Removal::remove`], unless no create was sent, or
/// [none has succeeded](Self::refused).
///
/// The server cannot distinguish such a holder from the next one by the path. So the hold has no
/// [guarded writes](crate::HoldView::transaction), and its session cannot be
/// [left](Session::detach) to another process while the znode may exist.
pub struct OwnedZnode {
    open: Arc<OpenSession>,
    server: Arc<dyn ServerSession>,
    /// `None` once it is held, and while it is dropped.
    owned: Option<Owned>,
    /// The creates without an answer, and when the last create was sent.
    creates: Mutex<(UnknownCreates, Duration)>,
    path: String,
    began: Instant,
}

impl OwnedZnode {
    /// Waits for a ZooKeeper session, and begins a znode in it. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`] if no further ZooKeeper session will be opened.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing remains.
    pub async fn begin(session: &Session, removal: Arc<dyn Removal>) -> Result<OwnedZnode, Error> {
        let path = removal.path().to_owned();
        let open = session.opened(&path).await?;
        let server = open.live.server();
        let server = server.map_err(|error| Error::at(&*path, open.live.id(), error))?;
        let znode = open.znodes.of_recipe(removal);
        Ok(OwnedZnode {
            owned: Some(Owned::new(session.kept_open(), znode)),
            creates: Mutex::default(),
            open,
            server,
            path,
            began: Instant::now(),
        })
    }

    /// The server side of the znode's session, for the recipe's requests.
    pub fn server(&self) -> &Arc<dyn ServerSession> {
        &self.server
    }

    /// The id of the znode's session.
    pub fn session_id(&self) -> SessionId {
        self.open.live.id()
    }

    /// The error of an attempt of which a request has failed.
    pub fn failed(&self, error: ServerError) -> Error {
        Error::at(&*self.path, self.session_id(), error)
    }

    /// Runs the recipe's work until it is done or the session is over.
    ///
    /// # Errors
    ///
    /// The error of the work, and [`Error::SessionOver`].
    pub async fn during<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.open.live.during(&self.path, pin!(work)).await
    }

    /// Waits until a hold may be granted. Sends nothing if it may be at once.
    ///
    /// Call it before the znode is created, so that the holder of a lapsed lease bars nobody.
    ///
    /// # Errors
    ///
    /// Those of a `sync`.
    pub async fn until_may_hold(&self) -> Result<(), ServerError> {
        self.open.live.until_may_grant(&self.path).await
    }

    /// Creates a directory and its missing parents. Succeeds if they exist already.
    ///
    /// # Errors
    ///
    /// Those of its creates, and [`Error::MissingChroot`].
    pub async fn create_directory(
        &self,
        path: &NodePath,
        kind: Directories,
        acl: &[Acl],
    ) -> Result<(), Error> {
        let missing = MissingDirectory {
            path,
            data: &[],
            kind,
            acl,
        };
        missing.create(&self.open.live, &*self.server).await
    }

    /// Refuses a chroot that does not exist. Sends one read, or none if there is no chroot.
    ///
    /// # Errors
    ///
    /// [`Error::MissingChroot`], and [`Error::SessionOver`].
    pub async fn refuse_missing_chroot(&self) -> Result<(), Error> {
        refuse_missing_chroot(&self.open.live, &*self.server, &self.path).await
    }

    /// Creates the znode, which is ephemeral. Call [`refused`](Self::refused) if it was refused.
    ///
    /// # Errors
    ///
    /// Those of the request. [`ServerError::SessionOver`] also once the session is being [left to
    /// another process](Session::detach), or has ended here: nothing is sent then.
    pub async fn create(&self, data: &[u8], acl: &[Acl]) -> Result<Created, ServerError> {
        let server = self.open.live.server()?;
        if let Some(owned) = &self.owned {
            owned.znode.before_create()?;
        }
        lock(&self.creates).1 = self.open.live.now();
        let create = server.create(&self.path, data, CreateMode::Ephemeral, acl);
        let outcome = create.await;
        self.open.live.note_create(&outcome);
        outcome
    }

    /// Runs a wait for the holder of the path to leave.
    ///
    /// If the holder is of the same session, an event warns after the session timeout: see
    /// [`docs::events`](crate::docs::events).
    pub async fn waits<T>(&self, wait: impl Future<Output = T>) -> T {
        let is_awaited = |path: &str| path == self.path;
        let warn = |waited| {
            let granted = &self.open.granted;
            granted.warn_of_own_wait(WITHOUT_ZNODE, waited, is_awaited);
        };
        OwnWait::begin(self.open.live.timeout())
            .during(pin!(wait), warn)
            .await
    }

    /// Notes that no create has succeeded: nothing need be deleted.
    pub fn refused(&self) {
        if let Some(owned) = &self.owned {
            owned.znode.note_gone();
        }
    }

    /// Waits before a create is sent again whose outcome was unknown, and that was not applied.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if each of eight creates soon broke its connection, and no create was
    /// ever answered: the server may not know the request.
    pub async fn before_another_create(&self) -> Result<(), Error> {
        let (mut unknown, sent) = std::mem::take(&mut *lock(&self.creates));
        let another = unknown.another(&self.open.live, &self.path, sent).await;
        *lock(&self.creates) = (unknown, sent);
        another
    }

    /// Holds by the znode with this metadata, which exists and is the recipe's own.
    ///
    /// `recipe` and `name` are for events and metrics. The hold is lost after `at_most`, if that is
    /// set: see [`QueueOptions::at_most`](crate::QueueOptions::at_most). `None` if the lease has
    /// lapsed meanwhile: the znode is then deleted in the background.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the path is not a [`NodePath`], or `at_most` is zero.
    pub fn hold(
        mut self,
        recipe: &'static str,
        name: &Arc<str>,
        stat: &Stat,
        at_most: Option<Duration>,
    ) -> Result<Option<Hold>, InvalidInput> {
        check_time_limit(at_most)?;
        let token = FencingToken::from(stat.czxid);
        let source = Source {
            recipe,
            name: name.clone(),
            path: NodePath::new(&self.path)?,
            leads: false,
        };
        let Some(lapses) = self.open.live.may_grant() else {
            return Ok(None);
        };
        let Some(mut owned) = self.owned.take() else {
            return Ok(None);
        };
        owned.znode.set_czxid(stat.czxid);
        let granted = self.open.granted.clone();
        let grant = Grant::new(owned, granted, lapses, token, None);
        let (caller, waited) = (Span::current(), self.began.elapsed());
        let record = HoldRecord::begin(Arc::new(source), &caller, token, waited);
        let until = grant.until(at_most);
        Ok(Some(Hold::new(grant, None, record, until)))
    }
}

impl Drop for OwnedZnode {
    fn drop(&mut self) {
        if let Some(mut owned) = self.owned.take() {
            if !owned.znode.may_exist() {
                owned.settle();
            }
        }
    }
}

impl fmt::Debug for OwnedZnode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnedZnode")
            .field("path", &self.path)
            .field("session_id", &self.session_id())
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Refuses a znode with this data and access control list if no request could create it.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`].
    pub fn check_znode(
        &self,
        path: &NodePath,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<(), InvalidInput> {
        check_acl(acl)?;
        let limit = self.request_limit();
        limit.check_contender(path.as_str(), "", data, acl)
    }
}
