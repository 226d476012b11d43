//! The handle of a process in a simulation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::{Ensemble, ServerSession};
use zookeeper_recipes_core::{ConnectOptions, ServerError, ZookeeperEnsemble};

use crate::chance::fault::Way;
use crate::client::environment::SimulatedEnvironment;
use crate::client::process::{Clock, ProcessId};
use crate::client::turns::Kind;
use crate::engine::shared::Shared;
use crate::engine::tasks;

/// A process of a simulation: a machine of its own, with its clock, its sessions and its tasks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use zookeeper_recipes_core::ensemble::ConnectionState;
/// use zookeeper_recipes_simulation::{Simulation};
///
/// let simulation = Simulation::default();
/// let process = simulation.process("worker");
/// let session = process.connect().await?;
///
/// process.sleep(Duration::from_secs(60)); // longer than its session lives
/// process.while_awake(async {}).await;
/// tokio::time::sleep(Duration::from_secs(1)).await;
/// assert!(matches!(session.state(), ConnectionState::Ended(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SimulatedProcess {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ProcessId,
    pub(crate) clock: Clock,
    pub(crate) name: String,
    pub(crate) chroot: String,
}

impl SimulatedProcess {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same process with a chroot: all paths are relative to it. It must exist on the server.
    pub fn with_chroot(self, chroot: &str) -> SimulatedProcess {
        SimulatedProcess {
            chroot: chroot.to_owned(),
            ..self
        }
    }

    /// The ensemble, as this process reaches it.
    ///
    /// The names of its servers have the seed in them.
    ///
    /// # Panics
    ///
    /// If the [chroot](Self::with_chroot) is not well formed.
    pub fn ensemble(&self) -> Arc<dyn Ensemble> {
        let environment = SimulatedEnvironment {
            shared: Arc::clone(&self.shared),
            process: self.id,
            clock: self.clock,
        };
        let (hosts, timeout) = self.shared.with(|world| {
            let hosts = world.servers.network.names.of_connect_string();
            (hosts, world.servers.options.session_timeout)
        });
        let chroot = self.chroot.trim_end_matches('/');
        let connect_string = format!("{}{chroot}", hosts.join(","));
        let ensemble = ZookeeperEnsemble::within(Arc::new(environment), timeout, &connect_string);
        Arc::new(ensemble.expect("a good chroot"))
    }

    /// Opens a session of this process with the default options, and no recipes' session over it.
    ///
    /// # Errors
    ///
    /// Those of [`Connector::connect`](zookeeper_recipes_core::ensemble::Connector::connect).
    ///
    /// # Panics
    ///
    /// As [`ensemble`](Self::ensemble).
    pub async fn connect(&self) -> Result<Arc<ServerSession>, ServerError> {
        let connector = self.ensemble().connector(&ConnectOptions::new());
        let connector = connector.expect("it needs no options");
        connector.connect().await.map(Arc::new)
    }

    /// Puts it to sleep, as SIGSTOP does, for this long or until it is [woken](Self::wake).
    ///
    /// Its clients do not send or receive anything, and the background tasks of its sessions
    /// pause. Its clock runs.
    ///
    /// A test's own tasks continue, unless they run [`while_awake`](Self::while_awake). Their requests
    /// to the ensemble are sent when the process wakes.
    pub fn sleep(&self, duration: Duration) {
        self.shared
            .with(|world| world.fall_asleep(self.id, duration));
    }

    /// Wakes it if it sleeps, as SIGCONT does.
    pub fn wake(&self) {
        self.shared.with(|world| world.wake_now(self.id));
    }

    /// Kills it, as SIGKILL does.
    ///
    /// Its connections end, its sessions end by their timeouts, and its tasks never run again. After
    /// that, [`Simulation::process`](crate::Simulation::process) makes another process of this
    /// name.
    pub fn kill(&self) {
        self.shared.with(|world| world.kill(self.id));
    }

    /// True if it sleeps, or has been killed.
    pub fn is_asleep(&self) -> bool {
        self.shared
            .with(|world| world.processes[self.id].is_asleep())
    }

    /// Runs a future as a task of this process: the task pauses while the process sleeps.
    pub async fn while_awake<F: Future>(&self, future: F) -> F::Output {
        tasks::run(&self.shared, self.id, Kind::Own, future).await
    }

    /// Blocks the background tasks of its sessions, and their clients, for this time.
    ///
    /// The process's own tasks continue. It is as if the runtime of the sessions were blocked, and the
    /// tasks ran in another runtime.
    pub fn block_sessions(&self, duration: Duration) {
        self.shared.with(|world| world.block(self.id, duration));
    }

    /// Runs a future as a task of this process, in the order of the seed.
    ///
    /// For many tasks that one event may wake together: the seed and not the runtime decides
    /// which task runs first. Otherwise the same as [`while_awake`](Self::while_awake).
    ///
    /// Poll the future only when it is woken, as a `FuturesUnordered` does. Do not poll it with
    /// other futures, as `join!` does.
    pub async fn in_turn<F: Future>(&self, future: F) -> F::Output {
        tasks::run(&self.shared, self.id, Kind::InTurn, future).await
    }

    /// Cuts it off from all servers.
    ///
    /// Messages arrive late. If the connection is given up meanwhile, they may never arrive.
    pub fn partition(&self, duration: Duration) {
        self.partition_one_way(Way::Both, duration);
    }

    /// Cuts it off from all servers in one direction.
    pub fn partition_one_way(&self, way: Way, duration: Duration) {
        self.shared
            .with(|world| world.partition(self.id, way, duration));
    }

    /// Makes each message between it and the servers take this much longer for a while, both ways.
    ///
    /// A connection then opens later by a round trip, which is twice `by`. A network with a long
    /// round trip is one whose `duration` is longer than the test. Another call replaces this one;
    /// a `by` of zero ends it.
    pub fn lengthen_path(&self, by: Duration, duration: Duration) {
        self.shared
            .with(|world| world.lengthen_path(self.id, by, duration));
    }

    /// Breaks the connections of all its sessions. Messages in flight may or may not arrive.
    pub fn disconnect(&self) {
        self.shared.with(|world| {
            for connection in world.connections_of(self.id) {
                world.cut(connection);
            }
        });
    }
}

impl fmt::Debug for SimulatedProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SimulatedProcess")
            .field("name", &self.name)
            .field("chroot", &self.chroot)
            .finish_non_exhaustive()
    }
}
