//! The handle by which a test breaks servers, sessions and requests.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zookeeper_recipes_core::ensemble::SessionId;

use crate::chance::fault::{Fault, Way};
use crate::chance::rates::FaultRates;
use crate::client::world::Action;
use crate::engine::shared::Shared;
use crate::options::ServerSettings;
use crate::server::data::Data;

/// Breaks the servers, sessions and requests of a simulation.
///
/// A method breaks a server or a session at once. An [injected](Self::inject) fault waits for its
/// request. The faults of [rates](Self::set_rates) happen by chance.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use zookeeper_recipes_simulation::{FaultRates, Simulation, SimulationOptions};
///
/// let simulation = Simulation::with(|it| it.servers = 3);
/// let session = simulation.process("worker").connect().await?;
///
/// simulation.faults().elect(1, Duration::from_secs(1)); // the leader falls
/// tokio::time::sleep(Duration::from_secs(2)).await;
/// assert_eq!(simulation.administrator().leader(), 1);
///
/// simulation.faults().set_rates(FaultRates {
///     reply_lost: 0.1,
///     late_by: Duration::from_secs(1),
///     request_late: 0.2,
///     ..Default::default()
/// });
/// // ... the code under test, and then:
/// simulation.faults().stop();
/// session.sync("/").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Faults {
    pub(crate) shared: Arc<Shared>,
}

/// The data of the servers at one time: see [`Faults::back_up`].
#[derive(Clone)]
pub struct Backup(Arc<Data>);

impl fmt::Debug for Backup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Backup").finish_non_exhaustive()
    }
}

impl Faults {
    /// Injects a fault for the next request that it describes.
    pub fn inject(&self, fault: Fault) {
        self.shared.with(|world| world.faults.push(fault));
    }

    /// How many injected faults still wait for their request.
    pub fn waiting(&self) -> usize {
        self.shared.with(|world| world.faults.len())
    }

    /// Sets the rates of faults that happen by chance.
    pub fn set_rates(&self, rates: FaultRates) {
        self.shared.with(|world| {
            let any = rates.any_per_second();
            world.kernel().rates = rates;
            if any && !world.dice_armed {
                world.dice_armed = true;
                world.after(Duration::ZERO, Action::RollDice);
            }
        });
    }

    /// Ends all faults: drops the injected ones and sets all rates to zero.
    ///
    /// A fault that has happened already ends when its time is over.
    pub fn stop(&self) {
        self.shared.with(|world| {
            world.faults.clear();
            world.kernel().rates = FaultRates::default();
        });
    }

    /// Breaks a session's connection. Messages in flight may or may not arrive.
    pub fn disconnect(&self, session: SessionId) {
        self.shared.with(|world| {
            if let Some(connection) = world.connection_of_session(session) {
                world.cut(connection);
            }
        });
    }

    /// Breaks all connections to a server. Messages in flight may or may not arrive.
    pub fn disconnect_from(&self, server: usize) {
        self.shared.with(|world| {
            for connection in world.servers.network.connections_to(server) {
                world.cut(connection);
            }
        });
    }

    /// Makes a server answer the next reconnect of a session with a new session.
    ///
    /// The old session may still live: see
    /// [`forgets_sessions`](crate::SimulationOptions::forgets_sessions).
    pub fn forget(&self, session: SessionId) {
        self.shared
            .with(|world| world.servers.forgotten.insert(session.0));
    }

    /// Cuts a follower off from the leader, unless the server is the leader.
    ///
    /// The follower still answers reads and pings. Writes and syncs hang until the follower is
    /// back, or gives up its leader after [`sync_limit`](crate::SimulationOptions::sync_limit)
    /// ticks. If no quorum is left, nothing is committed.
    pub fn cut_off_from_leader(&self, server: usize, duration: Duration) {
        self.cut_off_one_way(server, Way::Both, duration);
    }

    /// Cuts a follower off from the leader in one direction.
    ///
    /// The leader gives it up in either case.
    pub fn cut_off_one_way(&self, server: usize, way: Way, duration: Duration) {
        self.shared
            .with(|world| world.servers.cut_off(server, way, duration));
    }

    /// Cuts a server off from all clients for good, in one direction or both.
    ///
    /// The server still accepts connections, as one behind a proxy does, or one whose process hangs.
    /// No message passes in this direction. If the direction is [`Way::Down`], the server performs
    /// each request, and no client gets an answer.
    pub fn cut_off_from_clients(&self, server: usize, way: Way) {
        self.shared
            .with(|world| world.servers.cut_off_from_clients(server, way));
    }

    /// Cuts the leader off from its followers. There must be at least two of them.
    ///
    /// The leader still answers reads, pings and syncs of its own clients, and confirms
    /// their sessions. It notices that it has no quorum within
    /// [`sync_limit`](crate::SimulationOptions::sync_limit) ticks and one. Meanwhile the followers
    /// give it up, and elect another leader. The call does nothing unless all members serve.
    pub fn isolate_leader(&self, duration: Duration) {
        self.shared.with(|world| world.servers.isolate(duration));
    }

    /// Stops a server, as SIGKILL does. Its connections break, and it refuses others.
    ///
    /// It keeps its data and the transactions that it has acknowledged, as on a disk. If it leads,
    /// the others elect another leader within a fifth of a tick. If no quorum is left, no server
    /// serves, and no session expires. An isolation of the leader ends first.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn stop_member(&self, server: usize) {
        self.shared.with(|world| world.stop_member(server));
    }

    /// Starts a server that was [stopped](Self::stop_member), on the same port.
    ///
    /// It catches up with its leader before it serves.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn start_member(&self, server: usize) {
        self.shared.with(|world| world.start_member(server));
    }

    /// True if a server is [stopped](Self::stop_member).
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn is_stopped(&self, server: usize) -> bool {
        self.shared
            .with(|world| world.servers.members[server].stopped)
    }

    /// Makes a server apply each transaction later than the leader, by this time.
    ///
    /// Zero ends the lag. The server's clients read an older state, and a `sync` waits until the
    /// server has caught up. The lag has no effect while the server leads.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn lag(&self, server: usize, by: Duration) {
        self.shared
            .with(|world| world.servers.members[server].lag = by);
    }

    /// Makes a server answer each request for a session later, by a time in this range, for a while.
    ///
    /// A client that gives such a handshake up has still touched its session: the server looks at
    /// the session after a random part of this time, whether or not the client waits. So a session
    /// whose client always gives up too early never expires. `by..=by` is a fixed time. Another call
    /// replaces this one; `Duration::ZERO..=Duration::ZERO` ends it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    ///
    /// let simulation = Simulation::default();
    /// let late = Duration::from_millis(300);
    /// simulation.faults().slow_handshakes(0, late..=late, Duration::from_secs(60));
    ///
    /// let began = simulation.now();
    /// let session = simulation.process("worker").connect().await?;
    /// assert!(simulation.now() - began >= late);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn slow_handshakes(&self, server: usize, by: RangeInclusive<Duration>, duration: Duration) {
        self.shared
            .with(|world| world.servers.slow_handshakes(server, by, duration));
    }

    /// Stops all commits for this time, as if all servers waited for their disks.
    ///
    /// The servers answer reads and pings. They answer a sync if no write before it waits for its
    /// commit.
    pub fn stall_commits(&self, duration: Duration) {
        self.shared.with(|world| world.servers.stall(duration));
    }

    /// Makes a server pause for this time. Messages to it wait.
    ///
    /// It runs again half a tick before the other servers give it up, at the latest.
    pub fn pause_server(&self, server: usize, duration: Duration) {
        self.shared
            .with(|world| world.servers.pause_server(server, duration));
    }

    /// Restarts all members with other settings.
    ///
    /// Every connection breaks. After `duration` one of the members leads.
    pub fn restart(&self, settings: ServerSettings, duration: Duration) {
        self.shared.with(|world| {
            let server = world.servers.leader;
            world.servers.elect(server, duration);
            world.servers.restart = Some(settings);
        });
    }

    /// Keeps the data of the servers as they are now: all that has been committed.
    pub fn back_up(&self) -> Backup {
        let data = self.shared.with(|world| world.servers.back_up());
        Backup(Arc::new(data))
    }

    /// Restarts all servers with the data of a backup. Every connection breaks. After `duration` one
    /// of them leads.
    ///
    /// The znodes, the sessions and the count of transactions are those of the backup. A majority
    /// that comes back with it has the same effect, because the other servers take over its data.
    ///
    /// - A client that has seen a later transaction than a server has is refused: the server closes
    ///   the connection in the handshake, as Apache's does. Several servers begin a new epoch at
    ///   the election, so they admit the client after the next write, if no election has followed the
    ///   backup. A single server admits it after as many writes as were lost.
    /// - If the client is admitted, a session of the backup continues, with the ephemeral znodes that
    ///   it had then. Another session is over.
    ///
    /// After it no recipe can keep the promises that it has made before: another contender can hold
    /// while the lease of an earlier holder lasts, and fencing tokens can repeat.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use zookeeper_recipes_core::ensemble::CreateMode;
    /// use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    ///
    /// let simulation = Simulation::default();
    /// let administrator = simulation.administrator();
    /// administrator.create("/kept", b"", CreateMode::Persistent).expect("a new path");
    /// let backup = simulation.faults().back_up();
    /// administrator.create("/lost", b"", CreateMode::Persistent).expect("a new path");
    ///
    /// simulation.faults().restore(&backup, Duration::from_secs(1));
    /// assert_eq!(administrator.children("/"), ["kept", "zookeeper"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn restore(&self, backup: &Backup, duration: Duration) {
        self.shared
            .with(|world| world.servers.restore(&backup.0, duration));
    }

    /// Restarts all servers without data, as if each was new. Otherwise as
    /// [`restore`](Self::restore).
    ///
    /// A client is refused until the servers have committed as many transactions as it has seen. Its
    /// session is over then.
    pub fn lose_data(&self, duration: Duration) {
        self.shared.with(|world| {
            let servers = world.servers.members.len();
            world.servers.restore(&Data::empty(servers), duration);
        });
    }

    /// Makes all servers refuse the credentials of new connections, or accept them again.
    ///
    /// So does a server that was restarted without the provider of their scheme.
    pub fn refuse_credentials(&self, refuse: bool) {
        self.shared
            .with(|world| world.servers.refuses_credentials = refuse);
    }

    /// Sets the wall clock of all servers, from which `ctime` and `mtime` of a znode are.
    pub fn set_system_time(&self, time: SystemTime) {
        let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = since_1970.saturating_sub(self.shared.now());
        self.shared
            .with(|world| world.servers.began_at = began.as_millis() as i64);
    }

    /// Makes the leader fail, and `server` lead after `duration`. Every connection breaks.
    pub fn elect(&self, server: usize, duration: Duration) {
        self.shared
            .with(|world| world.servers.elect(server, duration));
    }
}
