//! How a simulation is to be.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::engine::limits::Limits;
use crate::opcode::Opcode;
use crate::wire::request::Request;

/// How a simulation is set up: its seed, its servers, their timing, and what they do not know.
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
    /// The seed of all chance in the simulation.
    pub seed: u64,
    /// How many servers there are. The first is the leader to begin with.
    pub servers: usize,
    /// The session timeout that clients ask for.
    pub session_timeout: Duration,
    /// The shortest timeout that a session gets: the server's `minSessionTimeout`, or two ticks.
    pub min_session_timeout: Option<Duration>,
    /// The longest timeout that a session gets: the server's `maxSessionTimeout`, or 20 ticks.
    pub max_session_timeout: Option<Duration>,
    /// The server's `tickTime`.
    pub tick: Duration,
    /// The server's `syncLimit`: after how many ticks a follower gives up its leader.
    pub sync_limit: u32,
    /// By how many millionths the clock of a process may be faster or slower than the servers'.
    /// With any, each process's clock begins at a time of its own.
    pub clock_drift: u32,
    /// How long a message between a client and a server takes, in whole milliseconds.
    pub network_delay: RangeInclusive<Duration>,
    /// How long a transaction takes from proposal to commit.
    pub commit_delay: RangeInclusive<Duration>,
    /// How long after the leader a follower applies a transaction.
    pub follower_lag: RangeInclusive<Duration>,
    /// Which ZooKeeper the servers are, for what has changed between versions: before 3.8.2 the
    /// reply to a transaction tells the metadata only of the containers among what it has created
    /// (ZOOKEEPER-4026), and before 3.8.4, or between 3.9.0 and 3.9.1, an exists asks for no
    /// permission.
    pub version: (u32, u32, u32),
    /// Whether the servers answer every reconnect with a new session, as ClickHouse Keeper does.
    /// The client takes it over in silence: its requests go on in the new session, and the znodes
    /// of the old one stand until that has expired.
    pub forgets_sessions: bool,
    /// Whether a server without a leader goes on serving reads, to clients over TCP that say that
    /// reads are enough for them: the server's `readonlymode.enabled`. It gives them sessions of its
    /// own, which end with their connections.
    pub read_only_mode: bool,
    /// The largest request that the servers read: the server's `jute.maxbuffer`. At a larger one
    /// they close the connection.
    pub largest_request: usize,
    /// The requests that the servers do not know, and close the connection at.
    pub unknown: Vec<Opcode>,
    /// How often the leader reaps empty containers.
    pub container_interval: Duration,
    /// How many lines of trace are kept; with none nothing is recorded.
    pub trace_limit: usize,
    /// How much may happen before [`exceeds_its_limits`](crate::Simulation::exceeds_its_limits)
    /// tells of it.
    pub limits: Limits,
}

impl SimulationOptions {
    /// Whether the servers close the connection at this.
    pub(crate) fn closes_at(&self, request: &Request) -> bool {
        request.size() > self.largest_request
            || self.unknown.iter().any(|opcode| opcode.is_of(request))
    }

    /// The timeout that a session is given.
    pub(crate) fn negotiate(&self, asked_for: Option<Duration>) -> Duration {
        let least = self.min_session_timeout.unwrap_or(self.tick * 2);
        let most = self.max_session_timeout.unwrap_or(self.tick * 20);
        let asked_for = asked_for.unwrap_or(self.session_timeout);
        asked_for.max(least).min(most)
    }

    pub(crate) fn transactions_tell_metadata(&self) -> bool {
        self.version >= (3, 8, 2)
    }

    pub(crate) fn exists_asks_for_permission(&self) -> bool {
        self.version >= (3, 8, 4) && !((3, 9, 0)..(3, 9, 2)).contains(&self.version)
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
            network_delay: milliseconds(0)..=milliseconds(2),
            commit_delay: milliseconds(0)..=milliseconds(2),
            follower_lag: milliseconds(0)..=milliseconds(5),
            version: (3, 8, 4),
            forgets_sessions: false,
            read_only_mode: false,
            largest_request: 1_048_575,
            unknown: Vec::new(),
            container_interval: Duration::from_secs(60),
            trace_limit: 10_000,
            limits: Limits::default(),
        }
    }
}

/// What the members of an ensemble can be restarted with.
///
/// A session that comes back is given the timeout that it has asked for, within the new bounds;
/// its client is told, and tells nobody.
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
