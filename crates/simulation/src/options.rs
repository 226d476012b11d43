//! The options of a simulation.

use std::ops::RangeInclusive;
use std::time::Duration;

use zookeeper_recipes_protocol::{OpCode, Operation, RequestBody};

use crate::engine::limits::Limits;

/// The options of a simulation: its seed, its servers and their timing.
///
/// By default one server with the timing of ZooKeeper's default configuration, and a quick network.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
///
/// let simulation = Simulation::new(SimulationOptions {
///     seed: 7,
///     servers: 3,
///     session_timeout: Duration::from_secs(10),
///     ..Default::default()
/// });
/// # let _ = simulation;
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// The seed of every random choice in the simulation.
    pub seed: u64,
    /// The number of servers. The first one leads at the beginning.
    pub servers: usize,
    /// The session timeout that clients ask for, unless the options of their session set one.
    pub session_timeout: Duration,
    /// The shortest timeout that a session gets: the server's `minSessionTimeout`, or two ticks.
    pub min_session_timeout: Option<Duration>,
    /// The longest timeout that a session gets: the server's `maxSessionTimeout`, or 20 ticks.
    pub max_session_timeout: Option<Duration>,
    /// The server's `tickTime`.
    pub tick: Duration,
    /// The server's `syncLimit`: after how many ticks a follower gives up its leader.
    pub sync_limit: u32,
    /// The largest error of a process's clock against the servers' clock, in millionths.
    ///
    /// If it is not zero, each process's clock begins at a time of its own.
    pub clock_drift: u32,
    /// True if the connect string of each process is one name that has the addresses of all servers.
    ///
    /// Otherwise each server has a name of its own.
    pub one_name: bool,
    /// How long a message between a client and a server takes, in whole milliseconds.
    pub network_delay: RangeInclusive<Duration>,
    /// How long a transaction takes from proposal to commit.
    pub commit_delay: RangeInclusive<Duration>,
    /// How long after the leader a follower applies a transaction.
    pub follower_lag: RangeInclusive<Duration>,
    /// The version of ZooKeeper that the servers behave as.
    ///
    /// Before 3.8.2, the reply to a transaction has the metadata of created containers only
    /// (ZOOKEEPER-4026). Before 3.8.4, and in 3.9.0 and 3.9.1, `exists` needs no permission.
    pub version: (u32, u32, u32),
    /// True if the servers answer every reconnect with a new session, as ClickHouse Keeper does.
    ///
    /// The client's session ends then. The znodes of the old session exist until the servers
    /// expire it.
    pub forgets_sessions: bool,
    /// True if a server without a leader serves reads: the server's `readonlymode.enabled`.
    ///
    /// It does so for clients over TCP that ask for a read-only session. Such a session ends with
    /// its connection.
    pub read_only_mode: bool,
    /// The largest request that the servers read: the server's `jute.maxbuffer`.
    ///
    /// The servers close the connection at a larger request.
    pub largest_request: usize,
    /// The requests that the servers do not know. The servers close the connection at them.
    pub unknown: Vec<Opcode>,
    /// How often the leader deletes empty containers, and znodes whose time to live has passed: the
    /// server's `znode.container.checkIntervalMs`.
    pub container_interval: Duration,
    /// True if the servers create znodes with a time to live: the server's
    /// `zookeeper.extendedTypesEnabled`. Such a create is refused otherwise.
    pub extended_types: bool,
    /// The user that no access control list limits, as `user:` and the digest of its credentials:
    /// the server's `zookeeper.DigestAuthenticationProvider.superDigest`.
    pub super_digest: Option<String>,
    /// The number of lines that the trace keeps. With 0, nothing is recorded.
    pub trace_limit: usize,
    /// The limits that [`exceeds_its_limits`](crate::Simulation::exceeds_its_limits) reports.
    pub limits: Limits,
}

impl SimulationOptions {
    /// True if the servers close the connection at this.
    pub(crate) fn closes_at(&self, request: &RequestBody) -> bool {
        self.unknown.iter().any(|opcode| opcode.is_of(request))
    }

    /// The timeout of a session whose client asks for so many milliseconds.
    pub(crate) fn negotiate(&self, asked_for: i32) -> Duration {
        let asked_for = Duration::from_millis(asked_for.max(0) as u64);
        let least = self.min_session_timeout.unwrap_or(self.tick * 2);
        let most = self.max_session_timeout.unwrap_or(self.tick * 20);
        asked_for.max(least).min(most)
    }

    pub(crate) fn transactions_report_metadata(&self) -> bool {
        self.version >= (3, 8, 2)
    }

    pub(crate) fn exists_asks_for_permission(&self) -> bool {
        self.version >= (3, 8, 4) && !((3, 9, 0)..(3, 9, 2)).contains(&self.version)
    }

    /// True if the servers refuse a transaction as a whole if a mode in it is none of a create.
    pub(crate) fn reads_create_modes_first(&self) -> bool {
        self.version >= (3, 9, 0)
    }

    pub(crate) fn keeps_watch_modes_apart(&self) -> bool {
        self.version >= (3, 9, 0)
    }
}

impl Default for SimulationOptions {
    /// One server with the timing of a default configuration, and a quick network.
    fn default() -> SimulationOptions {
        let milliseconds = Duration::from_millis;
        SimulationOptions {
            seed: 0,
            servers: 1,
            session_timeout: Duration::from_secs(6),
            min_session_timeout: None,
            max_session_timeout: None,
            tick: Duration::from_secs(2),
            sync_limit: 5,
            clock_drift: 0,
            one_name: false,
            network_delay: milliseconds(0)..=milliseconds(2),
            commit_delay: milliseconds(0)..=milliseconds(2),
            follower_lag: milliseconds(0)..=milliseconds(5),
            version: (3, 8, 4),
            forgets_sessions: false,
            read_only_mode: false,
            largest_request: 1_048_575,
            unknown: Vec::new(),
            container_interval: Duration::from_secs(60),
            extended_types: false,
            super_digest: None,
            trace_limit: 10_000,
            limits: Limits::default(),
        }
    }
}

/// The settings with which the members of an ensemble can be restarted.
///
/// A session that reconnects gets the timeout that its client asks for, within the new bounds. The
/// client learns the new timeout, and does not report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// The new `tickTime`.
    pub tick: Duration,
    /// The new `minSessionTimeout`, or two ticks.
    pub min_session_timeout: Option<Duration>,
    /// The new `maxSessionTimeout`, or 20 ticks.
    pub max_session_timeout: Option<Duration>,
}

impl ServerSettings {
    pub(crate) fn apply(self, options: &mut SimulationOptions) {
        options.tick = self.tick;
        options.min_session_timeout = self.min_session_timeout;
        options.max_session_timeout = self.max_session_timeout;
    }
}

/// A request that some servers do not know: older versions of ClickHouse Keeper and RaftKeeper
/// close the connection at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A create that is answered with the metadata: every one that this client sends.
    Create,
    /// A create of a container.
    CreateContainer,
    /// Watches that are restored on a reconnect.
    SetWatches,
    /// A watch that is taken off.
    RemoveWatches,
    /// A watch of a znode and of all below it.
    AddWatch,
}

impl Opcode {
    fn is_of(self, request: &RequestBody) -> bool {
        use Operation as Part;
        let is_container = |part: &Part| {
            matches!(part, Part::Create(it) | Part::Create2(it) | Part::CreateContainer(it)
                if it.mode.is_container())
        };
        match (self, request.opcode()) {
            (Opcode::Create, OpCode::Create2 | OpCode::CreateContainer)
            | (Opcode::CreateContainer, OpCode::CreateContainer)
            | (Opcode::SetWatches, OpCode::SetWatches | OpCode::SetWatches2)
            | (Opcode::RemoveWatches, OpCode::RemoveWatches)
            | (Opcode::AddWatch, OpCode::AddWatch) => true,
            (Opcode::CreateContainer, _) => {
                matches!(request, RequestBody::Multi(all) if all.iter().any(is_container))
            }
            _ => false,
        }
    }
}
