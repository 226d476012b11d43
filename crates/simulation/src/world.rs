//! The state of a simulation, and the agenda that moves it on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use zookeeper_recipes_core::ensemble::{AuthId, SessionId};

use super::client::Client;
use super::counters::Counters;
use super::faults::{FaultRates, Pending};
use super::history::Committed;
use super::isolation::Isolated;
use super::limits::Gauge;
use super::proposal::Outstanding;
use super::request::{Downward, Upward};
use super::server::{Connection, FromLeader, Server, SessionRecord, ToLeader};
use super::tasks::{TaskId, Turns};
use super::trace::{Recorder, TraceEntry, TraceKind};
use super::transaction::Transaction;
use super::tree::Tree;
use super::watches::ConnectionId;
use super::{ServerSettings, SimulationOptions};

/// The client of one session.
pub(super) type ClientId = u64;

/// The place of a process in [`World::processes`].
pub(super) type ProcessId = usize;

/// The clock of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    begins_at: Duration,
    /// By how many millionths it is faster than the servers' clocks.
    drift: i32,
}

impl Clock {
    pub(super) fn at(&self, now: Duration) -> Duration {
        let drift = now.as_nanos() as i128 * i128::from(self.drift) / 1_000_000;
        self.begins_at + Duration::from_nanos((now.as_nanos() as i128 + drift) as u64)
    }
}

/// One client machine.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) clock: Clock,
    /// Where it has been killed, for ever.
    pub(super) asleep_until: Option<Duration>,
    /// Until when its sessions and their clients stand still, while its own tasks go on.
    pub(super) blocked_until: Option<Duration>,
    /// Until when nothing that it sends arrives.
    pub(super) mute_until: Duration,
    /// Until when nothing that is sent to it arrives.
    pub(super) deaf_until: Duration,
    /// The tasks that wait for it to go on.
    pub(super) wakers: BTreeMap<TaskId, Waker>,
    /// How many requests it has sent in which second.
    sent: (u64, u64),
}

/// What is sent is counted.
impl World {
    pub(super) fn count_request(&mut self, process: ProcessId) {
        let second = self.now.as_secs();
        let process = &mut self.processes[process];
        if process.sent.0 != second {
            process.sent = (second, 0);
        }
        process.sent.1 += 1;
        self.gauge.sent(&process.name, process.sent.1);
    }
}

impl Process {
    pub(super) fn is_dead(&self) -> bool {
        self.asleep_until == Some(Duration::MAX)
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep_until.is_some()
    }

    /// Whether its sessions and their clients stand still.
    pub(super) fn is_still(&self) -> bool {
        self.asleep_until.is_some() || self.blocked_until.is_some()
    }
}

/// What is to happen at a time.
#[derive(Debug)]
pub(super) enum Action {
    ToServer {
        connection: ConnectionId,
        message: Upward,
    },
    ToClient {
        connection: ConnectionId,
        message: Downward,
    },
    /// A client takes one of the messages that were held back from it.
    Release {
        connection: ConnectionId,
    },
    ToLeader {
        term: u64,
        server: usize,
        message: ToLeader,
    },
    FromLeader {
        term: u64,
        server: usize,
        message: FromLeader,
    },
    Commit {
        index: u64,
    },
    /// A connection breaks for both its ends.
    Break {
        connection: ConnectionId,
        cause: &'static str,
    },
    ClientTimer {
        client: ClientId,
    },
    Reconnect {
        client: ClientId,
        attempt: u64,
    },
    AttemptFailed {
        client: ClientId,
        attempt: u64,
    },
    Wake {
        process: ProcessId,
        at: Duration,
    },
    Unblock {
        process: ProcessId,
        at: Duration,
    },
    /// The leader looks for sessions that it has not heard of for too long.
    ExpireSessions,
    /// The followers tell the leader which sessions they have heard of.
    TouchSessions,
    ReapContainers,
    RollDice,
    /// Commits that have stalled go on.
    EndStall,
    /// A paused server goes on.
    Resume {
        server: usize,
    },
    /// A follower has been cut off for so long that it stops serving.
    GiveUpLeader {
        server: usize,
        cut: u64,
    },
    RejoinLeader {
        server: usize,
        cut: u64,
    },
    Elected {
        term: u64,
        server: usize,
    },
    /// The followers of an isolated leader have heard nothing of it for too long.
    FollowersGiveUp {
        cut: u64,
    },
    /// An isolated leader notices that it is alone.
    StepDown {
        cut: u64,
    },
    EndIsolation {
        server: usize,
        cut: u64,
    },
}

/// Who is told of each commit.
pub(super) type CommitObserver = Arc<dyn Fn(&Committed) + Send + Sync>;

/// What is left to do once the lock has been let go of: it wakes tasks and drops what they own.
pub(super) type Effect = Box<dyn FnOnce() + Send>;

pub(super) struct World {
    /// The way back to this world, for what outlives the lock.
    pub(super) handle: Weak<Shared>,
    pub(super) options: SimulationOptions,
    pub(super) rng: Rng,
    pub(super) now: Duration,
    agenda: BTreeMap<(Duration, u64), Action>,
    sequence: u64,
    pub(super) effects: Vec<Effect>,

    pub(super) processes: Vec<Process>,
    pub(super) clients: BTreeMap<ClientId, Client>,
    pub(super) next_client: ClientId,
    pub(super) connections: BTreeMap<ConnectionId, Connection>,
    pub(super) next_connection: ConnectionId,

    pub(super) servers: Vec<Server>,
    pub(super) leader: usize,
    /// A leader that is cut off from all the others.
    pub(super) isolated: Option<Isolated>,
    /// What the members begin anew with, as soon as one of them leads.
    pub(super) restart: Option<ServerSettings>,
    /// Whether it is settled who will lead next, and when.
    pub(super) electing: bool,
    /// Grows with each election. Messages of an earlier term are void.
    pub(super) term: u64,
    pub(super) epoch: i64,
    pub(super) proposals: i64,
    /// The tree with all that has been proposed.
    pub(super) tree: Tree,
    pub(super) outstanding: Outstanding,
    /// The transactions that some server has still to apply; `log_start` is the first one's index.
    pub(super) log: VecDeque<Arc<Transaction>>,
    pub(super) log_start: u64,
    pub(super) committed: u64,
    pub(super) last_commit: Duration,
    /// Commits that wait for a quorum, or for the end of a stall.
    pub(super) commits_held: bool,
    /// Until when nothing is committed.
    pub(super) stalled_until: Duration,
    /// How many servers stand still.
    pub(super) paused: usize,
    pub(super) sessions: BTreeMap<i64, SessionRecord>,
    pub(super) next_session: i64,
    pub(super) identities: BTreeMap<i64, Vec<AuthId>>,
    /// The sessions whose next reconnect is answered with another session.
    pub(super) forgotten: BTreeSet<i64>,
    pub(super) syncs: Vec<(u64, usize, ConnectionId, u64)>,
    pub(super) timers_armed: bool,
    pub(super) dice_armed: bool,

    pub(super) faults: Pending,
    pub(super) rates: FaultRates,
    pub(super) turns: Turns,
    pub(super) gauge: Gauge,
    pub(super) recorder: Recorder,
    pub(super) history: Vec<Committed>,
    pub(super) commit_observer: Option<CommitObserver>,
    pub(super) counters: Counters,
}

impl World {
    fn new(options: SimulationOptions, handle: Weak<Shared>) -> World {
        let count = options.servers.max(1);
        World {
            handle,
            rng: Rng::with_seed(options.seed),
            now: Duration::ZERO,
            agenda: BTreeMap::new(),
            sequence: 0,
            effects: Vec::new(),
            processes: Vec::new(),
            clients: BTreeMap::new(),
            next_client: 1,
            connections: BTreeMap::new(),
            next_connection: 1,
            servers: (0..count).map(|_| Server::new()).collect(),
            leader: 0,
            isolated: None,
            restart: None,
            electing: false,
            term: 1,
            epoch: 1,
            proposals: 0,
            tree: Tree::new(),
            outstanding: Outstanding::new(),
            log: VecDeque::new(),
            log_start: 0,
            committed: 0,
            last_commit: Duration::ZERO,
            commits_held: false,
            stalled_until: Duration::ZERO,
            paused: 0,
            sessions: BTreeMap::new(),
            next_session: 1,
            identities: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            syncs: Vec::new(),
            timers_armed: false,
            dice_armed: false,
            faults: Pending::default(),
            rates: FaultRates::default(),
            turns: Turns::default(),
            gauge: Gauge::new(options.limits.clone()),
            recorder: Recorder::new(options.trace_limit),
            history: Vec::new(),
            commit_observer: None,
            counters: Counters::default(),
            options,
        }
    }

    pub(super) fn schedule(&mut self, at: Duration, action: Action) {
        let at = whole_milliseconds(at.max(self.now) + Duration::from_nanos(999_999));
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), action);
        self.gauge.outstanding(self.agenda.len());
    }

    pub(super) fn after(&mut self, delay: Duration, action: Action) {
        self.schedule(self.now + delay, action);
    }

    /// A time within the range, in whole milliseconds: tokio's timers know no shorter ones.
    pub(super) fn draw(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let (low, high) = (
            range.start().as_millis() as u64,
            range.end().as_millis() as u64,
        );
        Duration::from_millis(if low >= high {
            low
        } else {
            self.rng.u64(low..=high)
        })
    }

    pub(super) fn draw_up_to(&mut self, longest: Duration) -> Duration {
        self.draw(&(Duration::ZERO..=longest))
    }

    pub(super) fn network_delay(&mut self) -> Duration {
        let range = self.options.network_delay.clone();
        self.draw(&range)
    }

    /// Whether something of this probability happens.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    pub(super) fn process(&mut self, name: &str) -> ProcessId {
        if let Some(found) = self
            .processes
            .iter()
            .position(|process| process.name == name && !process.is_dead())
        {
            return found;
        }
        let mut clock = Clock::default();
        if self.options.clock_drift > 0 {
            let most = self.options.clock_drift as i32;
            clock.drift = self.rng.i32(-most..=most);
            clock.begins_at = self.draw_up_to(Duration::from_secs(1_000_000));
        }
        self.processes.push(Process {
            name: name.to_owned(),
            clock,
            asleep_until: None,
            blocked_until: None,
            mute_until: Duration::ZERO,
            deaf_until: Duration::ZERO,
            wakers: BTreeMap::new(),
            sent: (0, 0),
        });
        self.processes.len() - 1
    }

    pub(super) fn trace(
        &mut self,
        kind: TraceKind,
        process: Option<ProcessId>,
        session: i64,
        text: impl FnOnce() -> String,
    ) {
        if !self.recorder.is_on() {
            return;
        }
        let entry = TraceEntry {
            at: self.now,
            kind,
            process: process.map(|process| self.processes[process].name.clone()),
            session: (session != 0).then_some(SessionId(session)),
            text: text(),
        };
        self.recorder.record(entry);
    }

    pub(super) fn trace_client(
        &mut self,
        kind: TraceKind,
        client: ClientId,
        text: impl FnOnce() -> String,
    ) {
        let Some(found) = self.clients.get(&client) else {
            return;
        };
        let (process, session) = (found.process, found.session);
        self.trace(kind, Some(process), session, text);
    }

    pub(super) fn effect(&mut self, effect: impl FnOnce() + Send + 'static) {
        self.effects.push(Box::new(effect));
    }

    /// Sends a value to whoever may still wait for it.
    pub(super) fn send<T: Send + 'static>(&mut self, to: oneshot::Sender<T>, value: T) {
        self.effect(move || {
            let _ = to.send(value);
        });
    }

    /// Does what is due, up to the first thing that a task could notice.
    fn step(&mut self) -> Step {
        if self.take_turn() {
            return Step::Noticed;
        }
        loop {
            let Some(entry) = self.agenda.first_entry() else {
                return Step::Wait(None);
            };
            let (at, _) = *entry.key();
            if at > self.now {
                return Step::Wait(Some(at));
            }
            let action = entry.remove();
            self.gauge.count(self.now);
            self.perform(action);
            if !self.effects.is_empty() {
                return Step::Noticed;
            }
        }
    }

    pub(super) fn perform(&mut self, action: Action) {
        let action = match self.paused {
            0 => action,
            _ => match self.hold_back(action) {
                Some(action) => action,
                None => return,
            },
        };
        match action {
            Action::ToServer {
                connection,
                message,
            } => self.arrive(connection, message),
            Action::ToClient {
                connection,
                message,
            } => self.reach_client(connection, message),
            Action::Release { connection } => self.release(connection),
            Action::ToLeader {
                term,
                server,
                message,
            } => self.reach_leader(term, server, message),
            Action::FromLeader {
                term,
                server,
                message,
            } => {
                self.reach_follower(term, server, message);
            }
            Action::Commit { index } => self.commit(index),
            Action::Break { connection, cause } => self.break_connection(connection, cause),
            Action::ClientTimer { client } => self.client_timer(client),
            Action::Reconnect { client, attempt } => self.reconnect(client, attempt),
            Action::AttemptFailed { client, attempt } => self.attempt_failed(client, attempt),
            Action::Wake { process, at } => self.wake(process, at),
            Action::Unblock { process, at } => self.unblock(process, at),
            Action::ExpireSessions => self.expire_sessions(),
            Action::TouchSessions => self.touch_sessions(),
            Action::ReapContainers => self.reap_containers_by_timer(),
            Action::RollDice => self.roll_dice(),
            Action::EndStall => self.commit_held(),
            Action::Resume { server } => self.resume_server(server),
            Action::GiveUpLeader { server, cut } => self.give_up_leader(server, cut),
            Action::RejoinLeader { server, cut } => self.rejoin_leader(server, cut),
            Action::Elected { term, server } => self.elected(term, server),
            Action::FollowersGiveUp { cut } => self.followers_give_up(cut),
            Action::StepDown { cut } => self.step_down(cut),
            Action::EndIsolation { server, cut } => self.end_isolation(server, cut),
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("World")
            .field("now", &self.now)
            .field("clients", &self.clients.len())
            .field("servers", &self.servers.len())
            .finish_non_exhaustive()
    }
}

enum Step {
    Noticed,
    Wait(Option<Duration>),
}

/// The world, shared by all who have a part in it.
#[derive(Debug)]
pub(super) struct Shared {
    world: Mutex<World>,
    start: Instant,
    changed: Arc<Notify>,
}

impl Shared {
    pub(super) fn start(options: SimulationOptions) -> Arc<Shared> {
        let shared = Arc::new_cyclic(|handle| Shared {
            world: Mutex::new(World::new(options, handle.clone())),
            start: Instant::now(),
            changed: Arc::new(Notify::new()),
        });
        tokio::spawn(drive(
            Arc::downgrade(&shared),
            Arc::clone(&shared.changed),
            shared.start,
        ));
        shared
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Looks at the world or changes it, then lets the tasks know.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.lock();
        let now = world.now;
        world.gauge.count(now);
        let result = change(&mut world);
        let effects = std::mem::take(&mut world.effects);
        drop(world);
        for effect in effects {
            effect();
        }
        self.changed.notify_one();
        result
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.now = world.now.max(whole_milliseconds(self.start.elapsed()));
        world
    }

    fn step(&self) -> Step {
        let mut world = self.lock();
        let step = world.step();
        let effects = std::mem::take(&mut world.effects);
        drop(world);
        for effect in effects {
            effect();
        }
        step
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// The one task of a simulation: moves it on as the clock does, as long as anybody has a part
/// in it.
async fn drive(shared: Weak<Shared>, changed: Arc<Notify>, start: Instant) {
    loop {
        let step = match shared.upgrade() {
            Some(shared) => shared.step(),
            None => return,
        };
        match step {
            // One thing at a time: whoever was woken runs before the next thing happens.
            Step::Noticed => tokio::task::yield_now().await,
            Step::Wait(None) => changed.notified().await,
            Step::Wait(Some(at)) => {
                tokio::select! {
                    biased;
                    () = changed.notified() => {}
                    () = tokio::time::sleep_until(start + at) => {}
                }
            }
        }
    }
}

/// The agenda keeps whole milliseconds, so that a seed gives the same times on any clock.
fn whole_milliseconds(time: Duration) -> Duration {
    Duration::from_millis(time.as_millis() as u64)
}
