//! The interface between the recipes and a ZooKeeper ensemble.
//!
//! The recipes send all requests through small, dyn-compatible traits. An [`Ensemble`] is a place,
//! a [`Connector`] opens sessions there with the options of one [`Session`](crate::Session), and a
//! [`ServerSession`] is one of these sessions.
//! [`ZookeeperEnsemble`](crate::ZookeeperEnsemble) implements them for real servers, over
//! [a connection of its own](zookeeper_recipes_connection). A simulation implements them for tests.
//!
//! # What an implementation promises
//!
//! * **Eager.** A method sends its request when it is *called*. The future only waits for the
//!   reply. A dropped future does not take a write back. It may take a read or a `sync` back that
//!   is not sent yet.
//! * **In order.** The server gets the requests in the order of the calls, and answers them in that
//!   order. The caller need not wait between two calls: a list that is called right after a create
//!   sees the new znode.
//! * **Watches.** A [`Watch`] resolves with one event. If it is dropped before, no watch stays on
//!   the server. Events over one connection become ready in the order of their transactions. Each
//!   event is ready before the reply to a read that sees its transaction. A watch survives a
//!   reconnect. Events from the time between the connections become ready in any order, but not
//!   before the [`connection`](ServerSession::connection) has another number.
//! * **Never behind.** A session does not read a state that is older than a state it has seen.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::contender::Identity;
use crate::invalid_input::InvalidInput;
use crate::server::error::ServerError;
pub use crate::server::error::SessionEnd;
use crate::server::options::ConnectOptions;
pub use crate::server::options::ConnectionOption;
pub use crate::server::request_limit::RequestLimit;
pub use zookeeper_recipes_connection::now;
pub use zookeeper_recipes_protocol::{Acl, AuthId, CreateMode, Permission, Stat};

/// The answer to a request that has already been sent.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, ServerError>>;

/// One ZooKeeper ensemble, as this process reaches it.
pub trait Ensemble: fmt::Debug + Send + Sync {
    /// What opens the sessions of a [`Session`] here, with its options.
    ///
    /// A [`Session`] calls it once, before its first session. It sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the ensemble cannot use one of the
    /// [options of connections](ConnectOptions::of_connections): see [`ConnectionOption::refuse`].
    ///
    /// [`Session`]: crate::Session
    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput>;

    /// The time since some fixed moment.
    ///
    /// The clock must be monotonic and must not be adjusted. It must also count the time when the
    /// machine or the process sleeps. After such a pause,
    /// [`HoldView::is_held`](crate::HoldView::is_held) is only as right as this clock.
    fn now(&self) -> Duration;

    /// The hosts of the ensemble for messages, without credentials.
    fn address(&self) -> String;

    /// The known servers of the ensemble, in any order, each by the same name in each process.
    ///
    /// [`AllOf`](crate::AllOf) takes two ensembles that have a server in common for one ensemble.
    /// By default the [`address`](Self::address) counts as the only server.
    fn servers(&self) -> Vec<String> {
        vec![self.address()]
    }

    /// The chroot: the server path that all other paths are relative to. `/` if none is set.
    fn chroot(&self) -> &str {
        "/"
    }

    /// A new and unique identity, from which a session counts the identities of its contenders.
    ///
    /// This is the only random value of a session. An ensemble that replays a seed draws the
    /// identity from that seed.
    fn identity(&self) -> Identity {
        Identity::random()
    }

    /// Wraps a background task of a [`Session`] before it is spawned.
    ///
    /// An ensemble that simulates processes pauses the task while its process sleeps.
    ///
    /// [`Session`]: crate::Session
    // Hidden: only a simulation runs the tasks of a session in its own order.
    #[doc(hidden)]
    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        work
    }
}

/// Opens the sessions of one [`Session`](crate::Session), one after the other.
pub trait Connector: fmt::Debug + Send + Sync {
    /// Opens a new session.
    ///
    /// The future resolves once a server has confirmed the session. If no server answers, it does
    /// not end by itself: the caller sets the deadline.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while the server opens a session, that session ends by its timeout.
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>>;

    /// The session timeout that [`connect`](Self::connect) asks for.
    ///
    /// The lease of a new session counts from the call. Return `None` if `connect` opens no
    /// session, because somebody has opened it earlier.
    fn asked_timeout(&self) -> Option<Duration>;

    /// Replaces the hosts of the session that is open, and of later ones.
    ///
    /// [`Session::set_hosts`] has the rules. By default this is refused.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the connect string is not well formed or has another chroot, or if this
    /// ensemble connects with hosts of its own.
    ///
    /// [`Session::set_hosts`]: crate::Session::set_hosts
    fn set_hosts(&self, connect_string: &str) -> Result<(), InvalidInput> {
        let problem = "cannot be used: this ensemble connects with hosts of its own";
        // It may have credentials in it.
        let _ = connect_string;
        Err(InvalidInput::new("connect string", "...", problem))
    }

    /// Why the last [`connect`](Self::connect) could not reach the servers, if this is known.
    ///
    /// The obstacle is known even if the future of that call was dropped.
    fn obstacle(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        None
    }
}

/// One ZooKeeper session.
///
/// Dropping the last reference closes the session. [`states`](Self::states) then ends with
/// [`ConnectionState::Ended`].
pub trait ServerSession: fmt::Debug + Send + Sync {
    /// The id of the session. It is the `ephemeralOwner` of the session's ephemeral znodes.
    fn id(&self) -> SessionId;

    /// The session timeout that was negotiated with the server.
    fn timeout(&self) -> Duration;

    /// The last known state of the connection.
    fn state(&self) -> ConnectionState;

    /// A stream of the current state of the connection and each later state.
    ///
    /// States that pass quickly may be skipped, but the last state is never skipped. The stream
    /// does not keep the session open. It ends after [`ConnectionState::Ended`].
    fn states(&self) -> BoxStream<'static, ConnectionState>;

    /// The number of the current connection. Each connection has a larger one. `None` without one.
    ///
    /// This changes before any event or reply that comes over a later connection is ready.
    fn connection(&self) -> Option<u64>;

    /// Sets the `jute.maxbuffer` of the servers, before the first request of a recipe.
    ///
    /// From then on, a longer request is not sent. Its answer is [`Refusal::TooLong`](crate::Refusal::TooLong).
    fn limit_requests(&self, bytes: usize);

    /// Leaves the present server for another one, because a lease cannot be kept there.
    ///
    /// By default this does nothing, for a client that cannot choose.
    fn leave_server(&self) {}

    /// The number of the connection over which the session was opened.
    ///
    /// If the current [`connection`](Self::connection) has another number, the session has
    /// reconnected since, perhaps before its first request. The lease goes by this.
    fn opened_over(&self) -> Option<u64>;

    /// True if the events of one [`connection`](Self::connection) come in the order of their
    /// transactions.
    ///
    /// False for a session that reads some znodes from time to time, because it cannot watch them.
    /// Each waiter of such a session lists its queue before it holds.
    fn orders_events(&self) -> bool;

    /// An identity of this session that no other client can show to the server.
    ///
    /// `None` if the session has no such identity. Its releases are then not marked.
    fn own_identity(&self) -> Option<AuthId>;

    /// Closes the session, after the requests that were asked before. Later requests are not sent.
    ///
    /// [`states`](Self::states) ends once the server has confirmed the close. A session that is over
    /// stays as it is.
    ///
    /// A session that was [opened earlier](Connector::asked_timeout) stays open at the server,
    /// because its user closes it. The first call then returns the session, so that the caller can
    /// delete the znodes that are left.
    fn close(&self) -> Option<Arc<dyn ServerSession>>;

    /// Creates a znode. If the mode is sequential, the server appends ten digits to `path`.
    ///
    /// A mode with a time to live is refused.
    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created>;

    /// Deletes a znode with any version of its data.
    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()>;

    /// Reads the names of a znode's children, in no order.
    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>>;

    /// Reads the names of a znode's children, and watches for created and deleted children.
    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)>;

    /// Reads the data and the metadata of a znode.
    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node>;

    /// Reads a znode, and watches for a change of its data and for its deletion.
    ///
    /// If the znode does not exist, no watch is set.
    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)>;

    /// Reads the metadata of a znode, and watches for its creation, change and deletion.
    ///
    /// `None` means that the znode does not exist. The watch is set even then.
    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)>;

    /// Applies all of `operations` in one transaction, or none of them.
    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>>;

    /// Reads several znodes in one request, or in several if one would be too long.
    ///
    /// `None` means that the znode does not exist.
    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>>;

    /// Makes the server of this session catch up with the leader.
    ///
    /// The answer proves that the server had its leader after this call.
    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, Exchange>;

    /// Commits a transaction that checks the root of the session's paths, and changes nothing.
    ///
    /// The answer proves that the leader of a quorum has accepted the connection. A server that has
    /// lost its leader accepts a reconnect, and its leader does not hear of it. An isolated leader
    /// accepts one, too. Only the leader of a quorum commits a write. So this leader has touched
    /// the session, and it refuses requests of the session that are still under way over an earlier
    /// connection. [`docs::lease`](crate::docs::lease) has the argument.
    ///
    /// The leader commits it even if the root does not exist, or if the session may not read it.
    fn commit_noop(&self) -> Reply<'_, Exchange>;
}

/// When a request and its answer passed, and over which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the request was sent, or a moment before, by the ensemble's clock.
    pub sent: Duration,
    /// When the answer came, or a moment after, by the ensemble's clock.
    pub answered: Duration,
    /// The [number](ServerSession::connection) of the connection that carried both.
    ///
    /// `None` if another connection may have carried one of them.
    pub connection: Option<u64>,
}

/// The id of a ZooKeeper session. It prints as in ZooKeeper's own tools.
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

/// The state of a session's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// A server answers.
    Connected,
    /// No server answers. The session may still be alive.
    Disconnected,
    /// The session is over.
    Ended(SessionEnd),
}

/// The data and the metadata of a znode.
pub type Node = (Vec<u8>, Stat);

/// A znode that was just created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its path, with the sequence number if the mode is sequential.
    pub path: String,
    /// Its metadata.
    pub stat: Stat,
}

/// One write or one condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The znode must exist, at this version of its data if one is given.
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

impl Operation {
    /// The znode must exist, with any version of its data.
    pub fn check(path: impl Into<String>) -> Operation {
        let path = path.into();
        Operation::Check {
            path,
            version: None,
        }
    }

    /// Creates a znode at `path`, to which the server appends a number if the mode is sequential.
    pub fn create(
        path: impl Into<String>,
        data: impl Into<Vec<u8>>,
        mode: CreateMode,
        acl: impl Into<Vec<Acl>>,
    ) -> Operation {
        Operation::Create {
            path: path.into(),
            data: data.into(),
            mode,
            acl: acl.into(),
        }
    }

    /// Replaces a znode's data, whatever its version.
    pub fn set_data(path: impl Into<String>, data: impl Into<Vec<u8>>) -> Operation {
        Operation::SetData {
            path: path.into(),
            data: data.into(),
            version: None,
        }
    }

    /// Deletes a znode, whatever the version of its data.
    pub fn delete(path: impl Into<String>) -> Operation {
        let path = path.into();
        Operation::Delete {
            path,
            version: None,
        }
    }

    /// The path of the znode.
    pub fn path(&self) -> &str {
        match self {
            Operation::Check { path, .. }
            | Operation::Create { path, .. }
            | Operation::SetData { path, .. }
            | Operation::Delete { path, .. } => path,
        }
    }

    pub(crate) fn path_mut(&mut self) -> &mut String {
        match self {
            Operation::Check { path, .. }
            | Operation::Create { path, .. }
            | Operation::SetData { path, .. }
            | Operation::Delete { path, .. } => path,
        }
    }
}

/// The result of one operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The condition was met.
    Checked,
    /// The znode was created. Some servers do not send the metadata: [`Stat::is_invalid`].
    Created(Created),
    /// The data was replaced.
    DataSet(Stat),
    /// The znode was deleted.
    Deleted,
}

/// The error of a transaction that was refused, or whose outcome is unknown.
#[derive(Clone, Debug)]
pub struct TransactionError {
    /// The index of the operation that the server refused.
    pub operation: Option<usize>,
    /// The error of the request.
    pub error: ServerError,
}

/// The event of a watch.
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
    /// The watch is not set any more, and has seen no event: read the znode again.
    ///
    /// Some servers close the connection if a client sets its watches again after a reconnect.
    Unwatched,
    /// The session of the watch is over.
    SessionEnded(SessionEnd),
}

/// A watch on the server. It resolves once, with its event.
///
/// # Cancel safety
///
/// If the watch is dropped before it resolves, the client removes it from the server. That is one
/// request, and the drop does not wait for the answer.
pub type Watch = BoxFuture<'static, Event>;
