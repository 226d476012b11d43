//! An embedded ensemble.

use super::error::StartError;
use super::options::EmbeddedOptions;
use super::thread::ServerThread;
use crate::administrator::Administrator;
use crate::faults::Faults;
use crate::simulation::Simulation;

/// Several ZooKeeper servers that behave as the members of one ensemble: in memory only.
///
/// Each member has a port of its own. The first leads to begin with. Otherwise as an
/// [`EmbeddedServer`](super::EmbeddedServer).
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_lock::{ExclusiveLock, Session};
/// use zookeeper_recipes_simulation::EmbeddedEnsemble;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ensemble = EmbeddedEnsemble::start()?;
/// let session = Session::connect(&ensemble.connect_string()).await?;
///
/// ensemble.faults().elect(1, Duration::from_millis(100)); // the leader falls
/// let hold = ExclusiveLock::new(&session, "/lock")?.acquire().await?;
/// assert!(hold.is_held());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EmbeddedEnsemble {
    thread: ServerThread,
}

impl EmbeddedEnsemble {
    /// Starts three members on free ports, and returns when they take connections.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start() -> Result<EmbeddedEnsemble, StartError> {
        EmbeddedEnsemble::start_with(EmbeddedOptions::default(), 3)
    }

    /// Starts so many members with these options, and returns when they take connections.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start_with(
        options: EmbeddedOptions,
        members: usize,
    ) -> Result<EmbeddedEnsemble, StartError> {
        let thread = ServerThread::start(options, members.max(1))?;
        Ok(EmbeddedEnsemble { thread })
    }

    /// The ports on 127.0.0.1 of the members.
    pub fn ports(&self) -> Vec<u16> {
        let addresses = self.thread.addresses.iter();
        addresses.map(|address| address.port()).collect()
    }

    /// The addresses of all members, for clients.
    pub fn connect_string(&self) -> String {
        let addresses: Vec<String> = self
            .thread
            .addresses
            .iter()
            .map(|it| it.to_string())
            .collect();
        addresses.join(",")
    }

    /// The address of one member, for a client that is to connect to no other.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    pub fn member(&self, member: usize) -> String {
        self.thread.addresses[member].to_string()
    }

    /// Has the whole ensemble stand still, and returns when it does.
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
    /// Keeps no history of changes.
    pub fn simulation(&self) -> &Simulation {
        &self.thread.simulation
    }
}
