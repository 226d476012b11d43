//! The embedded server.

use zookeeper_recipes_connection::tokio_is_paused;

use super::error::StartError;
use super::options::EmbeddedOptions;
use super::thread::ServerThread;
use crate::administrator::Administrator;
use crate::faults::Faults;
use crate::simulation::Simulation;

/// A ZooKeeper in this process, for development and tests: in memory only.
///
/// It serves ZooKeeper's own protocol on ports of 127.0.0.1, to clients in any language. It is one
/// server, or an ensemble of several members, each with a port of its own. It takes connections
/// when [`start`](Self::start) returns, and is gone when it is dropped, with all its data. It runs
/// in a thread of its own, in real time.
///
/// ```
/// use zookeeper_recipes_lock::{ExclusiveLock, Session};
/// use zookeeper_recipes_simulation::EmbeddedServer;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = EmbeddedServer::start()?;
/// let session = Session::connect(&server.connect_string()).await?;
/// let hold = ExclusiveLock::new(&session, "/lock")?.acquire().await?;
///
/// server.administrator().expire(hold.session_id());
/// println!("{}", hold.lost().await);
/// # Ok(())
/// # }
/// ```
///
/// # What it does not do
///
/// It keeps nothing on disk. It has no TLS, and its members cannot be reconfigured. A request to
/// authenticate by SASL is refused with the code `AUTHFAILED`, and the connection is closed.
///
/// By default it refuses a znode with a time to live and knows no super user, as Apache's server
/// does. [`SimulationOptions`](crate::SimulationOptions) change that. It neither counts nor enforces
/// quotas.
///
/// # Faults
///
/// [`faults`](Self::faults) breaks it, and [`administrator`](Self::administrator) changes its tree.
/// To both, all clients over TCP are one process, named `tcp`.
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_lock::{ExclusiveLock, Session};
/// use zookeeper_recipes_simulation::EmbeddedServer;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ensemble = EmbeddedServer::start_ensemble()?;
/// let session = Session::connect(&ensemble.connect_string()).await?;
///
/// ensemble.faults().elect(1, Duration::from_millis(100)); // the leader falls
/// let hold = ExclusiveLock::new(&session, "/lock")?.acquire().await?;
/// assert!(hold.is_held());
/// # Ok(())
/// # }
/// ```
///
/// # Faults over HTTP
///
/// With the feature `admin` and `EmbeddedOptions::admin_port` the server also takes faults over
/// HTTP, on a port of 127.0.0.1. `GET /` lists the routes with the fields of their bodies, which
/// are in JSON. The answer to a request that is refused has `{"error": "<one sentence>"}`.
///
/// ```text
/// curl --json '{"request": "create", "under": "/locks"}' localhost:8080/faults/drop-reply
/// curl -X POST localhost:8080/members/1/stop
/// ```
///
/// No web page can send such a request, though a browser on this machine reaches the port:
///
/// | status | if |
/// |---|---|
/// | 403 | `Host` is not `127.0.0.1`, `localhost` or `[::1]` with this port, or there is another `Origin` |
/// | 415 | there is a body, or its type is named, and `Content-Type` is not `application/json` |
/// | 413, 431 | the body has more than 64 KiB, the head more than 16 KiB |
/// | 409 | 1,000 faults wait for their request |
/// | 400, 404 | a field is wrong, or the route, the member or the session does not exist |
///
/// Each connection takes one request, within five seconds. If there are more than 256 connections,
/// the oldest is closed. The port does not ask who sends a request: any process of this machine may.
///
/// | fault | in this process | over HTTP |
/// |---|---|---|
/// | a connection breaks | [`Faults::disconnect`] | `POST /faults/cut` with a `session` |
/// | all connections to a member break | [`Faults::disconnect_from`] | `POST /faults/cut` with a `member` |
/// | a request or a reply comes late | [`FaultKind::RequestLate`], [`FaultKind::ReplyLate`] | `POST /faults/delay` |
/// | a request is lost | [`FaultKind::RequestLost`] | `POST /faults/drop-request` |
/// | a request is applied and its reply is lost | [`FaultKind::ReplyLost`] | `POST /faults/drop-reply` |
/// | a session expires | [`Administrator::expire`] | `POST /faults/expire` |
/// | a reconnect is answered with a new session | [`Faults::forget`] | `POST /faults/new-session-at-reconnect` |
/// | a member stops, and starts again | [`Faults::stop_member`], [`Faults::start_member`] | `POST /members/0/stop`, `POST /members/0/start` |
/// | a follower lags | [`Faults::lag`] | `POST /members/1/lag` |
/// | the faults that wait for their request are dropped | [`Faults::stop`] | `DELETE /faults` |
///
/// [`FaultKind::RequestLate`]: crate::FaultKind::RequestLate
/// [`FaultKind::ReplyLate`]: crate::FaultKind::ReplyLate
/// [`FaultKind::RequestLost`]: crate::FaultKind::RequestLost
/// [`FaultKind::ReplyLost`]: crate::FaultKind::ReplyLost
#[derive(Debug)]
pub struct EmbeddedServer {
    thread: ServerThread,
}

impl EmbeddedServer {
    /// Starts one server on a free port, and returns when it takes connections.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start() -> Result<EmbeddedServer, StartError> {
        EmbeddedServer::start_with(EmbeddedOptions::default())
    }

    /// Starts an ensemble of three members on free ports, and returns when they take connections.
    ///
    /// The first member leads to begin with.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start_ensemble() -> Result<EmbeddedServer, StartError> {
        EmbeddedServer::start_with(EmbeddedOptions {
            members: 3,
            ..EmbeddedOptions::default()
        })
    }

    /// Starts as many members as these options say, and returns when they take connections.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start_with(options: EmbeddedOptions) -> Result<EmbeddedServer, StartError> {
        if tokio_is_paused() {
            return Err(StartError::PausedClock);
        }
        let thread = ServerThread::start(options)?;
        Ok(EmbeddedServer { thread })
    }

    /// The port of the first member on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.thread.served.addresses[0].port()
    }

    /// The ports of all members on 127.0.0.1.
    pub fn ports(&self) -> Vec<u16> {
        let addresses = self.thread.served.addresses.iter();
        addresses.map(|address| address.port()).collect()
    }

    /// `127.0.0.1:<port>` of each member, with commas between, for clients.
    pub fn connect_string(&self) -> String {
        let addresses = self.thread.served.addresses.iter();
        let addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
        addresses.join(",")
    }

    /// `127.0.0.1:<port>` of one member, for a client that connects to this member only.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn member(&self, member: usize) -> String {
        self.thread.served.addresses[member].to_string()
    }

    /// `127.0.0.1:<port>` of the [admin port](Self#faults-over-http), if there is one.
    #[cfg(feature = "admin")]
    pub fn admin_address(&self) -> Option<String> {
        self.thread.served.admin.map(|address| address.to_string())
    }

    /// Makes all members pause, and returns when they do.
    ///
    /// Connections stay open, and nothing is answered. The clock runs on, so that sessions may
    /// expire when the server [resumes](Self::resume).
    pub fn pause(&self) {
        self.thread.pause();
    }

    /// Makes all members continue after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.thread.resume();
    }

    /// The handle that breaks members, sessions and requests.
    pub fn faults(&self) -> Faults {
        self.simulation().faults()
    }

    /// The handle of an administrator, who reads and changes the tree.
    pub fn administrator(&self) -> Administrator {
        self.simulation().administrator()
    }

    /// The simulation that is served. Its clients in this process are clients of the same ensemble.
    ///
    /// The simulation keeps no history of changes.
    pub fn simulation(&self) -> &Simulation {
        &self.thread.served.simulation
    }
}
