//! The interface between the recipes and a ZooKeeper ensemble.
//!
//! An [`Ensemble`] is a place, a [`Connector`] opens sessions there with the options of one
//! [`Session`](crate::Session), and a [`RawSession`] sends the requests of one of them, as the
//! protocol has them. [`ZookeeperEnsemble`](crate::ZookeeperEnsemble) implements them over
//! [a connection of its own](zookeeper_recipes_connection), and the crate
//! `zookeeper-recipes-adapter` over a client that the caller has connected. The recipes use a
//! [`ServerSession`]: it has a method for each request, and is the same for each ensemble.
//!
//! # What an implementation promises
//!
//! * **Eager.** [`RawSession::send`] sends its request when it is *called*. The future only waits for
//!   the reply. A dropped future does not take a write back. It may take a read or a `sync` back
//!   that is not sent yet.
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
use uuid::Uuid;
use zookeeper_recipes_connection::{Network, Tcp};

use crate::contender::Identity;
use crate::invalid_input::InvalidInput;
#[cfg(feature = "tls")]
use crate::server::check_options::refused_tls;
use crate::server::error::ServerError;
pub use crate::server::error::SessionEnd;
use crate::server::options::ConnectOptions;
pub use crate::server::raw_session::{
    RawAnswer, RawReply, RawSession, SessionId, Watch, boxed_reply,
};
pub use crate::server::scope::Scope;
pub use crate::server::session::{
    Created, Node, Pending, ServerSession, TransactionError, TreeWatch,
};
pub use zookeeper_recipes_connection::{
    Answer, ConnectionState, Exchange, RequestError, TreeEvent, TreeEvents, WatchEvent, now,
};
pub use zookeeper_recipes_protocol::{
    Acl, AuthId, CreateMode, EventType, Operation, Outcome, Permission, RequestBody, Stat,
};

/// The session timeout to ask for if nobody says another.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// One ZooKeeper ensemble, as this process reaches it.
pub trait Ensemble: fmt::Debug + Send + Sync {
    /// What is known of the ensemble before a session is open.
    fn facts(&self) -> &EnsembleFacts;

    /// What opens the sessions of a [`Session`] here, with its options.
    ///
    /// A [`Session`] calls it once, before its first session. It sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the ensemble cannot use an option that is set: see
    /// [`ConnectOptions::refuse_all_but`].
    ///
    /// [`Session`]: crate::Session
    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput>;
}

/// What is known of an ensemble before a session is open.
#[derive(Clone, Debug)]
pub struct EnsembleFacts {
    /// The hosts of the ensemble for messages, without credentials.
    pub address: String,
    /// The known servers of the ensemble, in any order, each by the same name in each process.
    ///
    /// `AllOf` of the crate `zookeeper-recipes` takes two ensembles that have a server in common for one ensemble.
    pub servers: Vec<String>,
    /// The chroot: the server path that all other paths are relative to. `/` if none is set.
    pub chroot: String,
    /// The session timeout to ask for if the options set none.
    ///
    /// `None` if the ensemble opens no session, because its user has opened it earlier, and closes
    /// it. Otherwise the lease of a new session counts from the request for it.
    pub session_timeout: Option<Duration>,
    /// The clock, the random numbers and the tasks.
    // Hidden: only a simulation has others than this machine's.
    #[doc(hidden)]
    pub environment: Arc<dyn Environment>,
}

impl EnsembleFacts {
    /// The facts of an ensemble of one known server, without a chroot.
    pub fn new(address: impl Into<String>) -> EnsembleFacts {
        let address = address.into();
        EnsembleFacts {
            servers: vec![address.clone()],
            address,
            chroot: "/".to_owned(),
            session_timeout: Some(DEFAULT_TIMEOUT),
            environment: Arc::new(Tcp::new()),
        }
    }
}

/// The connections, the clock, the random numbers and the tasks of an ensemble.
///
/// A simulation implements it, so that the ensemble and its connections are simulated as they are.
pub trait Environment: Network {
    /// What opens connections with the options.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if one of the options cannot be used here.
    fn network(&self, options: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput>;

    /// A random number that nobody can guess.
    fn random(&self) -> u128 {
        Uuid::new_v4().as_u128()
    }

    /// Wraps a task before it is spawned.
    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        work
    }
}

impl Environment for Tcp {
    fn network(&self, options: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &options.tls {
            let encrypted = Tcp::new().encrypted(tls.clone());
            return Ok(Arc::new(encrypted.map_err(|error| refused_tls(&error))?));
        }
        let _ = options;
        Ok(Arc::new(Tcp::new()))
    }
}

impl dyn Ensemble + '_ {
    /// The time since some fixed moment.
    ///
    /// The clock is monotonic, is not adjusted, and also counts the time when the machine or the
    /// process sleeps. After such a pause, [`HoldView::is_held`](crate::HoldView::is_held) is only as
    /// right as this clock.
    pub fn now(&self) -> Duration {
        self.facts().environment.now()
    }

    /// A new and unique identity, from which a session counts the identities of its contenders.
    ///
    /// This is the only random value of a session.
    pub fn identity(&self) -> Identity {
        Identity::from_random_bits(self.facts().environment.random())
    }

    /// Wraps a background task of a [`Session`](crate::Session) before it is spawned.
    // Hidden: only a simulation runs the tasks of a session in its own order.
    #[doc(hidden)]
    pub fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        self.facts().environment.task(work)
    }
}

/// Opens the sessions of one [`Session`](crate::Session), one after the other.
pub trait Connector: Send + Sync {
    /// Opens a new session.
    ///
    /// The future resolves once a server has confirmed the session. If no server answers, it does
    /// not end by itself: the caller sets the deadline.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while the server opens a session, that session ends by its timeout.
    fn connect(&self) -> BoxFuture<'_, Result<ServerSession, ServerError>>;

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
