//! A ZooKeeper ensemble in memory: deterministic under a seed, on tokio's clock, with every fault
//! that a real one has.
//!
//! It implements the seam of `zookeeper-recipes-core`, so whatever runs on an
//! [`Ensemble`] runs on it. On tokio's paused clock an hour passes in a moment, and one seed
//! gives the same trace again; on the real clock it stands in for a server in a unit test.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Permission};
//! use zookeeper_recipes_simulation::{
//!     Fault, FaultKind, RequestKind, Simulation, SimulationOptions,
//! };
//!
//! let simulation = Simulation::new(SimulationOptions { seed: 7, ..Default::default() });
//! let session = simulation.ensemble("worker").connect().await.unwrap();
//! simulation.faults().inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Create));
//!
//! let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
//! let created = session.create("/a", b"", CreateMode::Persistent, &everyone).await;
//!
//! assert!(created.is_err(), "nobody knows whether it was created");
//! assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
//! # }
//! ```
//!
//! # What it models
//!
//! Servers with a leader and followers that lag behind it; znodes with their metadata, sequences
//! (with their end), containers and access control lists; transactions; one-shot watches;
//! sessions that the leader expires; clients that ping, give up a connection, reconnect and give
//! up a session at the times of the crate `zookeeper-client`.
//!
//! Beside what every network does to messages: followers that are cut off, both ways or one;
//! leaders that are cut off and go on answering; members that stand still, stall, or are
//! restarted with other settings; servers that forget sessions, refuse, or close the connection at
//! a request that they do not know; processes that sleep, whose sessions stand still, or whose
//! clocks drift.
//!
//! # Determinism
//!
//! A seed gives the same again on a current-thread runtime with a paused clock, as long as what
//! runs on it is deterministic too: `tokio::select!` without `biased;` is not.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::{AuthId, CreateMode, Ensemble, Operation, SessionId};

mod administrator;
mod client;
mod counters;
mod dice;
mod faults;
mod history;
mod isolation;
mod limits;
mod process;
mod proposal;
mod quorum;
mod request;
mod server;
mod session;
mod stalls;
mod tasks;
mod trace;
mod transaction;
mod tree;
mod watches;
mod world;

pub use administrator::{Administrator, StandingNode, StandingWatch};
pub use counters::{Counters, RequestKind};
pub use faults::{Fault, FaultKind, FaultRates, Way};
pub use history::{Change, Committed};
pub use limits::Limits;
pub use trace::{Trace, TraceEntry, TraceKind};
pub use watches::WatchKind;

use request::Request;
use session::SimulatedEnsemble;
use tasks::Kind;
use world::{Action, Clock, ProcessId, Shared};

/// How a simulation is to be.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// What all chance comes from.
    pub seed: u64,
    /// How many servers there are. The first is the leader to begin with.
    pub servers: usize,
    /// The session timeout that clients ask for.
    pub session_timeout: Duration,
    /// The least that a session gets: the server's `minSessionTimeout`, or two ticks.
    pub min_session_timeout: Option<Duration>,
    /// The most that a session gets: the server's `maxSessionTimeout`, or 20 ticks.
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
    /// The largest request that the servers read: the server's `jute.maxbuffer`. At a larger one
    /// they close the connection.
    pub largest_request: usize,
    /// The requests that the servers do not know, and close the connection at.
    pub unknown: Vec<Opcode>,
    /// How often the leader reaps empty containers.
    pub container_interval: Duration,
    /// How many lines of trace are kept; with none nothing is recorded.
    pub trace_limit: usize,
    /// The most that may happen.
    pub limits: Limits,
}

/// A request that some servers do not know: older versions of ClickHouse Keeper and RaftKeeper
/// close the connection at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A create that is answered with the metadata: every one that this client sends.
    Create,
    /// A create of a container.
    CreateContainer,
    /// Watches that are set anew on a reconnect.
    SetWatches,
    /// A watch that is taken off.
    RemoveWatches,
}

impl Opcode {
    fn is_of(self, request: &Request) -> bool {
        let is_container = |operation: &Operation| {
            let Operation::Create { mode, .. } = operation else {
                return false;
            };
            *mode == CreateMode::Container
        };
        match (self, request) {
            (Opcode::Create, Request::Create { .. })
            | (Opcode::SetWatches, Request::SetWatches { .. })
            | (Opcode::RemoveWatches, Request::RemoveWatch { .. }) => true,
            (Opcode::CreateContainer, Request::Create { mode, .. }) => {
                *mode == CreateMode::Container
            }
            (Opcode::CreateContainer, Request::Transact(operations)) => {
                operations.iter().any(is_container)
            }
            _ => false,
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
    fn apply(self, options: &mut SimulationOptions) {
        options.tick = self.tick;
        options.min_session_timeout = self.min_session_timeout;
        options.max_session_timeout = self.max_session_timeout;
    }
}

impl SimulationOptions {
    /// Whether the servers close the connection at this.
    fn closes_at(&self, request: &Request) -> bool {
        request.size() > self.largest_request
            || self.unknown.iter().any(|opcode| opcode.is_of(request))
    }

    /// The timeout that a session is given.
    fn negotiate(&self) -> Duration {
        let least = self.min_session_timeout.unwrap_or(self.tick * 2);
        let most = self.max_session_timeout.unwrap_or(self.tick * 20);
        self.session_timeout.max(least).min(most)
    }

    fn transactions_tell_metadata(&self) -> bool {
        self.version >= (3, 8, 2)
    }

    fn exists_asks_for_permission(&self) -> bool {
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
            largest_request: 1_048_575,
            unknown: Vec::new(),
            container_interval: Duration::from_secs(60),
            trace_limit: 10_000,
            limits: Limits::default(),
        }
    }
}

/// A simulated ensemble and all its clients. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Simulation {
    shared: Arc<Shared>,
}

impl Simulation {
    /// Starts an ensemble. One task on the current tokio runtime moves it on, until the last
    /// handle to it and the last session are gone.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn new(options: SimulationOptions) -> Simulation {
        Simulation {
            shared: Shared::start(options),
        }
    }

    /// The ensemble, as the process of this name reaches it. The same name is the same process:
    /// what it opens sleeps and is cut off together.
    pub fn ensemble(&self, process: &str) -> Arc<dyn Ensemble> {
        self.process(process).ensemble()
    }

    /// The process of this name.
    pub fn process(&self, name: &str) -> SimulatedProcess {
        let (id, clock) = self.shared.with(|world| {
            let id = world.process(name);
            (id, world.processes[id].clock)
        });
        SimulatedProcess {
            clock,
            shared: Arc::clone(&self.shared),
            id,
            name: name.to_owned(),
            chroot: "/".to_owned(),
            identities: Vec::new(),
        }
    }

    /// What is to go wrong.
    pub fn faults(&self) -> Faults {
        Faults {
            shared: Arc::clone(&self.shared),
        }
    }

    /// The hand of an operator.
    pub fn administrator(&self) -> Administrator {
        Administrator {
            shared: Arc::clone(&self.shared),
        }
    }

    /// What has happened, to be read.
    pub fn trace(&self) -> Trace {
        self.shared.with(|world| world.recorder.snapshot())
    }

    /// Waits until more has happened than the [limits](SimulationOptions::limits) allow, and tells
    /// what. The simulation goes on.
    pub async fn exceeds_its_limits(&self) -> String {
        let mut exceeded = self.shared.with(|world| world.gauge.exceeded());
        loop {
            if let Some(text) = exceeded.borrow_and_update().clone() {
                return text;
            }
            if exceeded.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Writes a line of the test's own into the trace.
    pub fn remark(&self, text: impl Into<String>) {
        let text = text.into();
        self.shared
            .with(|world| world.trace(TraceKind::Remark, None, 0, || text));
    }

    /// What the ensemble has committed, oldest first.
    pub fn history(&self) -> Vec<Committed> {
        self.shared.with(|world| world.history.clone())
    }

    /// Has each change told to `observer` at the moment it is committed, before any client hears
    /// of it; only to the last one set.
    pub fn on_commit(&self, observer: impl Fn(&Committed) + Send + Sync + 'static) {
        self.shared
            .with(|world| world.commit_observer = Some(Arc::new(observer)));
    }

    /// What has been counted.
    pub fn counters(&self) -> Counters {
        self.shared.with(|world| {
            let watches = administrator::standing_watches(world).len();
            Counters {
                watches,
                ..world.counters.clone()
            }
        })
    }

    /// The time since the simulation began: what [`Ensemble::now`] tells every process, unless
    /// their clocks [drift](SimulationOptions::clock_drift).
    pub fn now(&self) -> Duration {
        self.shared.now()
    }
}

/// One client machine of a simulation.
#[derive(Clone, Debug)]
pub struct SimulatedProcess {
    shared: Arc<Shared>,
    id: ProcessId,
    clock: Clock,
    name: String,
    chroot: String,
    identities: Vec<AuthId>,
}

impl SimulatedProcess {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// With all paths relative to this one. It must exist on the server.
    pub fn with_chroot(self, chroot: &str) -> SimulatedProcess {
        SimulatedProcess {
            chroot: chroot.to_owned(),
            ..self
        }
    }

    /// With sessions that have authenticated as this, `AuthId::new("digest", "user:hash")` for
    /// one.
    pub fn with_identity(mut self, identity: AuthId) -> SimulatedProcess {
        self.identities.push(identity);
        self
    }

    /// The ensemble, as this process reaches it.
    pub fn ensemble(&self) -> Arc<dyn Ensemble> {
        Arc::new(SimulatedEnsemble {
            shared: Arc::clone(&self.shared),
            process: self.id,
            clock: self.clock,
            name: self.name.clone(),
            chroot: self.chroot.clone(),
            identities: self.identities.clone(),
        })
    }

    /// Puts it to sleep, as SIGSTOP does, for so long or until it is [woken](Self::wake): its clients neither send nor hear anything, nothing that
    /// its sessions do in the background moves, while its clock goes on.
    ///
    /// A test's own tasks go on unless they run [`while_awake`](Self::while_awake); what they ask of
    /// the ensemble is sent when it wakes.
    pub fn sleep(&self, duration: Duration) {
        self.shared
            .with(|world| world.fall_asleep(self.id, duration));
    }

    /// Wakes it, where it sleeps: SIGCONT.
    pub fn wake(&self) {
        self.shared.with(|world| world.wake_now(self.id));
    }

    /// Kills it, as SIGKILL does: its connections end, its sessions are left to their timeouts, and
    /// nothing of it ever moves again. [`Simulation::process`] of its name is another one then.
    pub fn kill(&self) {
        self.shared.with(|world| world.kill(self.id));
    }

    /// Whether it sleeps, or has been killed.
    pub fn is_asleep(&self) -> bool {
        self.shared
            .with(|world| world.processes[self.id].is_asleep())
    }

    /// Runs a future as a task of this process: it does not move while the process sleeps.
    pub async fn while_awake<F: Future>(&self, future: F) -> F::Output {
        tasks::run(&self.shared, self.id, Kind::Own, future).await
    }

    /// Has all that its sessions do in the background stand still for so long, and their clients,
    /// while the process's own tasks go on: the runtime that the sessions were opened in is
    /// blocked, and the tasks run in another.
    pub fn block_sessions(&self, duration: Duration) {
        self.shared.with(|world| world.block(self.id, duration));
    }

    /// As [`while_awake`](Self::while_awake), for one of many tasks that one event may wake
    /// together: which of them goes on first is up to the seed, and not to the runtime.
    ///
    /// To be polled only where it is woken, as by a `FuturesUnordered`, and not with each of the
    /// others, as by `join!`.
    pub async fn in_turn<F: Future>(&self, future: F) -> F::Output {
        tasks::run(&self.shared, self.id, Kind::InTurn, future).await
    }

    /// Cuts it off from all servers: what is sent arrives late or, where the connection is given
    /// up meanwhile, perhaps never.
    pub fn partition(&self, duration: Duration) {
        self.partition_one_way(Way::Both, duration);
    }

    /// Cuts it off from all servers, one way: what it sends does not arrive, or what is sent to it.
    pub fn partition_one_way(&self, way: Way, duration: Duration) {
        self.shared
            .with(|world| world.partition(self.id, way, duration));
    }

    /// Breaks the connections of all its sessions. What is in flight may or may not arrive.
    pub fn disconnect(&self) {
        self.shared.with(|world| {
            let connections: Vec<_> = world
                .clients
                .iter()
                .filter(|(_, client)| client.process == self.id)
                .filter_map(|(client, _)| world.connection_of(*client))
                .collect();
            for connection in connections {
                world.cut(connection);
            }
        });
    }
}

/// What is to go wrong in a simulation, now or when its moment comes.
#[derive(Clone, Debug)]
pub struct Faults {
    shared: Arc<Shared>,
}

impl Faults {
    /// Has something go wrong, once, with the request that the fault describes.
    pub fn inject(&self, fault: Fault) {
        self.shared.with(|world| world.faults.add(fault));
    }

    /// How many injected faults still wait for their request.
    pub fn waiting(&self) -> usize {
        self.shared.with(|world| world.faults.len())
    }

    /// Sets the chances of things going wrong.
    pub fn set_rates(&self, rates: FaultRates) {
        self.shared.with(|world| {
            world.rates = rates;
            if world.rates.any_per_second() && !world.dice_armed {
                world.dice_armed = true;
                world.after(Duration::ZERO, Action::RollDice);
            }
        });
    }

    /// No more faults from now on: none injected, no chances. What is broken mends in its time.
    pub fn stop(&self) {
        self.shared.with(|world| {
            world.faults.clear();
            world.rates = FaultRates::default();
        });
    }

    /// Breaks a session's connection. What is in flight may or may not arrive.
    pub fn disconnect(&self, session: SessionId) {
        self.shared.with(|world| {
            let found = world
                .clients
                .iter()
                .find(|(_, client)| client.session == session.0);
            let connection = found.and_then(|(client, _)| world.connection_of(*client));
            if let Some(connection) = connection {
                world.cut(connection);
            }
        });
    }

    /// Has the next reconnect of a session answered with a new session, though the old one may
    /// live on: see [`forgets_sessions`](SimulationOptions::forgets_sessions).
    pub fn forget(&self, session: SessionId) {
        self.shared.with(|world| world.forgotten.insert(session.0));
    }

    /// Cuts a follower off from the leader. It goes on answering reads and pings; writes and
    /// syncs hang, until it is back or gives up its leader after
    /// [`sync_limit`](SimulationOptions::sync_limit) ticks. With no quorum left nothing is
    /// committed. Nothing happens where the server is the leader.
    pub fn cut_off_from_leader(&self, server: usize, duration: Duration) {
        self.cut_off_one_way(server, Way::Both, duration);
    }

    /// Cuts a follower off from the leader, one way: nothing that it sends arrives, or nothing
    /// that is sent to it. The leader gives it up all the same.
    pub fn cut_off_one_way(&self, server: usize, way: Way, duration: Duration) {
        self.shared
            .with(|world| world.cut_off(server, way, duration));
    }

    /// Cuts the leader off from all its followers, of which there must be two at least. It goes on
    /// answering reads, pings and syncs of its own clients, and tells them that their sessions
    /// live, until it notices that it has no quorum: within
    /// [`sync_limit`](SimulationOptions::sync_limit) ticks and one. Meanwhile the followers give it
    /// up and elect another. Nothing happens where one is cut off already.
    pub fn isolate_leader(&self, duration: Duration) {
        self.shared.with(|world| world.isolate(duration));
    }

    /// Has nothing committed for so long, as where all servers wait for their disks. Reads, pings,
    /// and syncs behind which nothing waits to be committed are answered.
    pub fn stall_commits(&self, duration: Duration) {
        self.shared.with(|world| world.stall(duration));
    }

    /// Has a server stand still for so long, but for less than the time after which the other
    /// servers give it up: what is sent to it waits.
    pub fn pause_server(&self, server: usize, duration: Duration) {
        self.shared
            .with(|world| world.pause_server(server, duration));
    }

    /// Restarts all members with other settings: every connection breaks, and after a while one of
    /// them leads.
    pub fn restart(&self, settings: ServerSettings, duration: Duration) {
        self.shared.with(|world| {
            let server = world.leader;
            world.elect(server, duration);
            world.restart = Some(settings);
        });
    }

    /// The leader falls, every connection with it; after a while `server` leads.
    pub fn elect(&self, server: usize, duration: Duration) {
        self.shared.with(|world| world.elect(server, duration));
    }
}
