//! The seam between the recipes and a ZooKeeper ensemble.
//!
//! Everything the recipes ask of ZooKeeper goes through two small, dyn-compatible traits:
//! [`Ensemble`] opens sessions, [`ServerSession`] is one of them. The crate
//! [`zookeeper-client`](zookeeper_client) implements them for real use
//! ([`ZookeeperEnsemble`](crate::ZookeeperEnsemble)); a simulation implements them for tests.
//!
//! # What an implementation promises
//!
//! * **Eager.** A request is sent when its method is *called*; the future only waits for the reply.
//!   Dropping the future does not unsend the request.
//! * **In order.** Requests reach the server in the order of the calls and are answered in that
//!   order, also when nobody waits in between. A list called right after a create sees the node.
//! * **Watches.** A [`Watch`] resolves with one event. Dropped before, it leaves nothing behind on
//!   the server. Events that come over one connection become ready in the order of the
//!   transactions that caused them, and before the reply to any read that sees those transactions.
//!   A watch survives a reconnect: what happened meanwhile is told afterwards, in any order, and
//!   not before [`disconnected`](ServerSession::disconnected) is ready.
//! * **Never behind.** A session never reads a state older than one it has seen.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

pub use crate::server::acl::{Acl, AuthId, Permission};

use crate::contender::Identity;
use crate::server::error::ServerError;
pub use crate::server::error::SessionEnd;
pub use crate::server::stat::Stat;

/// The answer to a request that has already been sent.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, ServerError>>;

/// Opens sessions with one ZooKeeper ensemble.
pub trait Ensemble: fmt::Debug + Send + Sync {
    /// Opens a new session.
    ///
    /// Resolves once a server has confirmed the session. May take for ever where no server
    /// answers: the caller sets the deadline.
    ///
    /// # Cancel safety
    ///
    /// A session that was opened on the server as the future was dropped ends by its timeout.
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>>;

    /// Whether [`connect`](Self::connect) opens the session that it returns, as by default, so that
    /// its server has heard of it since the call.
    fn opens_sessions(&self) -> bool {
        true
    }

    /// The time since some fixed moment.
    ///
    /// Monotonic, never adjusted, and counting also the time that the machine or the process was
    /// asleep. What it is worth is what [`HoldView::is_held`](crate::HoldView::is_held) is worth after a
    /// pause.
    fn now(&self) -> Duration;

    /// Where this ensemble is, for messages: the hosts, without credentials.
    fn address(&self) -> String;

    /// The path that every other path is relative to on the server; `/` where there is none.
    fn chroot(&self) -> &str {
        "/"
    }

    /// What keeps this process from the servers, as far as the last [`connect`](Self::connect) has
    /// seen; also if that was dropped.
    fn obstacle(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        None
    }

    /// The identity of a contender that is about to be created, unlike any other.
    ///
    /// All the chance there is in a recipe: an ensemble that replays a seed draws it from there.
    #[doc(hidden)]
    fn identity(&self) -> Identity {
        Identity::random()
    }

    /// A task of the process, as it is to be spawned: everything that a [`Session`] does by itself.
    ///
    /// An ensemble that simulates processes, too, lets it rest while its process sleeps.
    ///
    /// [`Session`]: crate::Session
    #[doc(hidden)]
    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        work
    }
}

/// One ZooKeeper session.
///
/// Dropping the last reference closes the session; [`states`](Self::states) then ends with
/// [`ConnectionState::Ended`].
pub trait ServerSession: fmt::Debug + Send + Sync {
    /// The session's id, which is the `ephemeralOwner` of its ephemeral znodes.
    fn id(&self) -> SessionId;

    /// The session timeout that was negotiated with the server.
    fn timeout(&self) -> Duration;

    /// The state of the connection, as far as it is known now.
    fn state(&self) -> ConnectionState;

    /// The state of the connection now, and then each later one.
    ///
    /// States that pass quickly may be skipped, but never the last one. Does not keep the session
    /// open. Ends after [`ConnectionState::Ended`].
    fn states(&self) -> BoxStream<'static, ConnectionState>;

    /// Resolves when the connection that stands at the call has broken; at once where none does.
    ///
    /// Ready before any event or reply that comes over a later connection. Does not keep the
    /// session open.
    fn disconnected(&self) -> BoxFuture<'static, ()>;

    /// An identity that the server knows this session by, and that nobody else can show.
    ///
    /// `None` where the session has none; then its releases mark nothing.
    fn own_identity(&self) -> Option<AuthId>;

    /// Creates a znode. A sequential mode appends ten digits to `path`.
    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created>;

    /// Deletes a znode, whatever the version of its data.
    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()>;

    /// The names of a znode's children, in no order.
    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>>;

    /// The names of a znode's children, and a watch on children that come or go.
    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)>;

    /// The data of a znode.
    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node>;

    /// The data of a znode, and a watch on its change and its deletion.
    ///
    /// Sets no watch where there is no such znode.
    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)>;

    /// Whether there is such a znode, and a watch on its creation, change and deletion.
    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)>;

    /// Writes all of `operations` in one transaction, or none of them.
    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>>;

    /// Reads several znodes, in one request or as few as the server accepts. `None` stands for a
    /// znode that is not there.
    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>>;

    /// Makes the server this session is connected to catch up with the leader.
    ///
    /// The answer proves that, after this call, that server still had its leader.
    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, ()>;
}

/// The id of a ZooKeeper session, printed as ZooKeeper's own tools print it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub i64);

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// What is known of a session's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// A server answers.
    Connected,
    /// No server answers; the session may live on.
    Disconnected,
    /// The session is over.
    Ended(SessionEnd),
}

/// What kind of znode is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CreateMode {
    /// One that stays until it is deleted.
    Persistent,
    /// One that stays, with a number that the server appends to its name.
    PersistentSequential,
    /// One that goes with its session.
    Ephemeral,
    /// One that goes with its session, with a number that the server appends to its name.
    EphemeralSequential,
    /// One that the server deletes some time after its last child has gone.
    Container,
}

impl CreateMode {
    /// True if the server appends a number to the name.
    pub fn is_sequential(self) -> bool {
        matches!(
            self,
            CreateMode::PersistentSequential | CreateMode::EphemeralSequential
        )
    }
}

/// What is read of a znode: its data and its metadata.
pub type Node = (Vec<u8>, Stat);

/// A znode that was just created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its path, with the sequence number where there is one.
    pub path: String,
    /// Its metadata.
    pub stat: Stat,
}

/// One write, or one condition, of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The znode must be there, at this version of its data where one is given.
    Check {
        /// The znode's path.
        path: String,
        /// The version that its data must have.
        version: Option<i32>,
    },
    /// Create a znode.
    Create {
        /// The znode's path, without the sequence number.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// Its kind.
        mode: CreateMode,
        /// Its access control list.
        acl: Vec<Acl>,
    },
    /// Replace a znode's data.
    SetData {
        /// The znode's path.
        path: String,
        /// The new data.
        data: Vec<u8>,
        /// The version that the old data must have.
        version: Option<i32>,
    },
    /// Delete a znode.
    Delete {
        /// The znode's path.
        path: String,
        /// The version that its data must have.
        version: Option<i32>,
    },
}

/// What one operation of a transaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The condition was met.
    Checked,
    /// The znode was created. Some servers leave the metadata out: [`Stat::is_invalid`].
    Created(Created),
    /// The data was replaced.
    DataSet(Stat),
    /// The znode was deleted.
    Deleted,
}

/// Why a transaction did not happen, or may have.
#[derive(Clone, Debug)]
pub struct TransactionError {
    /// Which operation the server refused, counted from zero.
    pub operation: Option<usize>,
    /// What the server said.
    pub error: ServerError,
}

/// What a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The znode was created.
    Created,
    /// The znode was deleted.
    Deleted,
    /// The znode's data was set.
    DataChanged,
    /// A child of the znode was created or deleted.
    ChildrenChanged,
    /// The session is over, and the watch with it.
    SessionEnded(SessionEnd),
}

/// A watch that has been set on the server: resolves once, with what it has seen.
///
/// # Cancel safety
///
/// Dropped before it has resolved, it is taken off the server (one request, not waited for).
pub type Watch = BoxFuture<'static, Event>;
