//! One embedded server.

use std::net::SocketAddr;

use super::error::StartError;
use super::options::EmbeddedOptions;
use super::thread::ServerThread;
use crate::administrator::Administrator;
use crate::faults::Faults;
use crate::simulation::Simulation;

/// A ZooKeeper server in this process, for development and tests: in memory only.
///
/// It serves ZooKeeper's own protocol on a port of 127.0.0.1, to clients in any language. It takes
/// connections when [`start`](Self::start) returns, and is gone when it is dropped, with all its
/// data. It runs in a thread of its own, in real time.
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
/// It keeps nothing on disk. It has no TLS, no SASL and no quotas, and its members cannot be
/// reconfigured. Znodes with a time to live are refused, as by a server that has not enabled them.
///
/// # Faults
///
/// [`faults`](Self::faults) breaks it, and [`administrator`](Self::administrator) changes its tree.
/// To both, all clients over TCP are one process, named `tcp`.
#[derive(Debug)]
pub struct EmbeddedServer {
    thread: ServerThread,
}

impl EmbeddedServer {
    /// Starts a server on a free port, and returns when it takes connections.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start() -> Result<EmbeddedServer, StartError> {
        EmbeddedServer::start_with(EmbeddedOptions::default())
    }

    /// Starts a server with these options, and returns when it takes connections.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start_with(options: EmbeddedOptions) -> Result<EmbeddedServer, StartError> {
        let thread = ServerThread::start(options, 1)?;
        Ok(EmbeddedServer { thread })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.thread.addresses[0]
    }

    /// The port on 127.0.0.1 that it listens on.
    pub fn port(&self) -> u16 {
        self.address().port()
    }

    /// `127.0.0.1:<port>`, for clients.
    pub fn connect_string(&self) -> String {
        self.address().to_string()
    }

    /// Has the server stand still, and returns when it does.
    ///
    /// Connections stay open, and nothing is answered. The clock runs on, so that sessions may
    /// expire when it [resumes](Self::resume).
    pub fn pause(&self) {
        self.thread.pause();
    }

    /// Ends a [standstill](Self::pause).
    pub fn resume(&self) {
        self.thread.resume();
    }

    /// The handle that breaks the server, its sessions and requests.
    pub fn faults(&self) -> Faults {
        self.simulation().faults()
    }

    /// The handle of an administrator, who reads and changes the tree.
    pub fn administrator(&self) -> Administrator {
        self.simulation().administrator()
    }

    /// The simulation that is served. Its clients in this process are clients of the same ensemble.
    ///
    /// Keeps no history of changes.
    pub fn simulation(&self) -> &Simulation {
        &self.thread.simulation
    }
}
