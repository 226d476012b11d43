//! What a seed decides before anything runs.

use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_simulation::{FaultRates, Limits, Opcode, SimulationOptions};
use zookeeper_recipes_suite::TestedRecipe;

/// How a run is to be.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) options: SimulationOptions,
    pub(crate) processes: usize,
    pub(crate) contenders: usize,
    /// How long things go wrong.
    pub(crate) troubled: Duration,
    pub(crate) rates: FaultRates,
    pub(crate) interference: Interference,
    pub(crate) crowd: Crowd,
    /// Whether sessions may be forgotten by servers that otherwise know them.
    pub(crate) forgets: bool,
    /// How long it takes at most from one pair of faults to the next.
    pub(crate) between_pairs: Option<Duration>,
    /// Whether most who hold go on for about as long as a session lasts.
    pub(crate) stays_long: bool,
    /// How often in a row a lock is handed on within a process.
    pub(crate) handovers: Option<u32>,
    /// Whether it is changed how much can be held.
    pub(crate) resizes: bool,
    /// How many want to know who leads.
    pub(crate) observers: usize,
    /// Where the numbers at the end of the names begin.
    pub(crate) first_number: i32,
}

/// How likely others are to meddle, of each kind, in comparison.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interference {
    pub(crate) deletes_contenders: u32,
    pub(crate) ends_sessions: u32,
    pub(crate) writes_to_contenders: u32,
    pub(crate) makes_other_children: u32,
    pub(crate) reaps_directories: u32,
    pub(crate) changes_acls: u32,
    /// Whether contenders of other libraries come.
    pub(crate) contends: bool,
}

/// How many there are beside those who contend in every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// How many tasks of a process wait for the recipe under test.
    pub(crate) waiters: usize,
    /// How many locks that nobody else wants a session holds.
    pub(crate) holds: usize,
}

/// A kind of fault that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reconnects answered with a new session.
    NewSessions,
    /// Sessions that stand still beside their process.
    Blocked,
    /// Leaders cut off from their followers.
    Isolated,
    /// Servers that stand still, and commits that stall.
    Slow,
    /// Cuts that go one way only.
    OneWay,
    /// Faults that belong together.
    Pairs,
    /// Servers that refuse for having too much to do.
    Throttled,
    /// Servers that close the connection at what they do not know.
    Unknown,
    /// Access control lists that change.
    Acls,
    /// Clocks that are not equally fast.
    Clocks,
    /// Waiters and holds by the hundred.
    Crowds,
}

impl Kind {
    /// All of them, each with what it is called on the command line.
    pub const ALL: [(&str, Kind); 11] = [
        ("new-sessions", Kind::NewSessions),
        ("blocked", Kind::Blocked),
        ("isolated", Kind::Isolated),
        ("slow", Kind::Slow),
        ("one-way", Kind::OneWay),
        ("pairs", Kind::Pairs),
        ("throttled", Kind::Throttled),
        ("unknown", Kind::Unknown),
        ("acls", Kind::Acls),
        ("clocks", Kind::Clocks),
        ("crowds", Kind::Crowds),
    ];
}

fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

impl Schedule {
    pub(crate) fn draw(recipe: &TestedRecipe, seed: u64, trace_limit: usize) -> Schedule {
        let mut rng = Rng::with_seed(seed);
        let tick = milliseconds(rng.u64(500..=2_000));
        let ticks = rng.u32(2..=10);
        // In a session of two ticks nothing can be kept over a network that is slow for it.
        let (tick, slow) = match ticks {
            2 => (tick.max(milliseconds(1_500)), 0),
            _ => (tick, rng.u32(0..=4)),
        };
        let session_timeout = tick * ticks;
        let network = rng.u64(0..=20);
        let options = SimulationOptions {
            seed: rng.u64(..),
            servers: [1, 1, 3, 3, 3, 5][rng.usize(..6)],
            sync_limit: rng.u32(2..=5),
            forgets_sessions: rng.u8(..20) == 0,
            clock_drift: if rng.bool() { 10_000 } else { 0 },
            unknown: match rng.u8(..80) {
                0 => vec![Opcode::CreateContainer],
                1 => vec![Opcode::RemoveWatches],
                2 => vec![Opcode::SetWatches],
                _ => Vec::new(),
            },
            session_timeout,
            tick,
            network_delay: Duration::ZERO..=milliseconds(network),
            commit_delay: Duration::ZERO..=milliseconds(rng.u64(0..=20)),
            follower_lag: Duration::ZERO..=session_timeout / 100 * slow,
            container_interval: Duration::from_secs(rng.u64(5..=60)),
            trace_limit,
            limits: limits(),
            ..SimulationOptions::default()
        };
        let mut rate = |most: f64| match rng.u8(..3) {
            0 => 0.0,
            1 => most * rng.f64() / 10.0,
            _ => most * rng.f64(),
        };
        let rates = FaultRates {
            request_lost: rate(0.1),
            reply_lost: rate(0.1),
            request_late: rate(0.1),
            reply_late: rate(0.1),
            event_late: rate(0.3),
            late_by: session_timeout,
            disconnected: rate(0.3),
            throttled: rate(0.02),
            forgotten: rate(0.3),
            replaced: rate(1.0),
            blocked: rate(0.1),
            blocked_for: session_timeout * 2,
            one_way: rate(1.0),
            isolated: rate(0.05),
            isolated_for: options.tick * (options.sync_limit + 4),
            stalled: rate(0.05),
            stalled_for: session_timeout,
            paused: rate(0.03),
            paused_for: session_timeout,
            partitioned: rate(0.1),
            partitioned_for: session_timeout * 2,
            asleep: rate(0.1),
            asleep_for: session_timeout * 2,
            cut_off: rate(0.1),
            cut_off_for: session_timeout * 2,
            elected: rate(0.05),
            elected_within: tick,
            // Those who meddle end sessions, so that it is known which.
            expired: 0.0,
        };
        let mut likely = |of: u8, weight: u32| if rng.u8(..of) == 0 { weight } else { 0 };
        let interference = Interference {
            // All holders of a lock of one znode have the same path, and must be told apart by it.
            deletes_contenders: likely(if recipe.queues { 3 } else { 8 }, 2),
            ends_sessions: likely(3, 1),
            // Nor may its data be lost, by which its owner knows it.
            writes_to_contenders: if recipe.queues { likely(2, 4) } else { 0 },
            makes_other_children: if recipe.queues { likely(2, 2) } else { 0 },
            reaps_directories: likely(2, 2),
            changes_acls: if recipe.queues { likely(8, 2) } else { 0 },
            contends: likely(3, 1) == 1,
        };
        let mut options = options;
        let crowd = match rng.u8(..100) {
            0 => Crowd {
                waiters: rng.usize(100..=400),
                holds: rng.usize(0..=20),
            },
            1 => Crowd {
                waiters: rng.usize(0..=50),
                holds: rng.usize(500..=1_500),
            },
            _ => Crowd::default(),
        };
        if crowd != Crowd::default() {
            options.limits.requests_per_second = 50_000;
        }
        let only_pairs = rng.u8(..5) == 0;
        let (rates, interference) = match only_pairs {
            true => (without_chance(rates), Interference::default()),
            false => (rates, interference),
        };
        let stays_long = only_pairs || rng.u8(..5) == 0;
        Schedule {
            options,
            processes: rng.usize(2..=4),
            contenders: rng.usize(1..=3),
            troubled: match stays_long {
                true => session_timeout * rng.u32(3..=6),
                false => milliseconds(rng.u64(5_000..=25_000)),
            },
            stays_long,
            forgets: true,
            crowd,
            rates,
            interference,
            between_pairs: match rng.u8(..5) {
                _ if only_pairs => Some(session_timeout / 2),
                0..=1 => Some(milliseconds(rng.u64(1_000..=8_000))),
                _ => None,
            },
            handovers: (recipe.hands_over() && rng.bool()).then(|| rng.u32(0..=2)),
            resizes: recipe.resizes && rng.bool(),
            observers: if recipe.elects { rng.usize(0..=2) } else { 0 },
            first_number: match rng.u8(..8) {
                0 => i32::MAX - rng.i32(0..=40),
                1 => 1_000_000_000 - rng.i32(0..=20),
                2 => 9_999_990,
                _ => 0,
            },
        }
    }

    pub(crate) fn leave_out(&mut self, kind: Kind) {
        let rates = &mut self.rates;
        match kind {
            Kind::NewSessions => {
                self.options.forgets_sessions = false;
                (rates.forgotten, rates.replaced) = (0.0, 0.0);
                self.forgets = false;
            }
            Kind::Blocked => rates.blocked = 0.0,
            Kind::Isolated => rates.isolated = 0.0,
            Kind::Slow => (rates.stalled, rates.paused) = (0.0, 0.0),
            Kind::OneWay => rates.one_way = 0.0,
            Kind::Pairs => self.between_pairs = None,
            Kind::Throttled => rates.throttled = 0.0,
            Kind::Unknown => self.options.unknown.clear(),
            Kind::Acls => self.interference.changes_acls = 0,
            Kind::Clocks => self.options.clock_drift = 0,
            Kind::Crowds => self.crowd = Crowd::default(),
        }
    }

    /// By when whatever went wrong at the last moment has mended.
    pub(crate) fn mends_within(&self) -> Duration {
        let rates = &self.rates;
        [
            rates.late_by,
            rates.partitioned_for,
            rates.asleep_for,
            rates.blocked_for,
            rates.cut_off_for,
            rates.isolated_for,
            rates.stalled_for,
            rates.paused_for,
            rates.elected_within,
            pairs_mend_within(&self.options),
            // Until servers that have lost each other have done with it.
            self.longest_tick() * (self.options.sync_limit + 3),
        ]
        .into_iter()
        .max()
        .unwrap_or_default()
    }

    /// The members may be restarted with a longer one.
    fn longest_tick(&self) -> Duration {
        match self.between_pairs {
            Some(_) => self.options.tick.max(longest_tick_of_pairs(&self.options)),
            None => self.options.tick,
        }
    }

    /// True if a watch that is taken off breaks the connection: each wait that ends early disturbs
    /// its session, until the session has learned to keep its watches.
    pub(crate) fn breaks_connections_at_watches(&self) -> bool {
        self.options.unknown.contains(&Opcode::RemoveWatches)
    }

    /// How long the last of all may have to wait once everything has mended.
    ///
    /// A session that nobody speaks for any more ends after its timeout and up to a tick, and a
    /// leader that was elected meanwhile gives it that time again. A client that was cut off finds
    /// a server by then. A process whose session is over waits for at most five seconds before it
    /// asks for another. The rest is the queue's own time: some round trips for each of those who
    /// are before.
    pub(crate) fn waits_at_most(&self) -> Duration {
        let options = &self.options;
        let dead = options.session_timeout + self.longest_tick() * 2;
        let queue = self.hands_on_within() * (self.processes * self.contenders) as u32;
        dead + Duration::from_secs(5) + queue * 2
    }

    /// How long it takes from one holder to the next where nothing goes wrong: some round trips,
    /// or the time from one poll to another.
    pub(crate) fn hands_on_within(&self) -> Duration {
        let options = &self.options;
        let round_trip = *options.network_delay.end() * 2
            + *options.commit_delay.end() * 2
            + *options.follower_lag.end() * 2;
        round_trip * 8 + milliseconds(700)
    }
}

/// How long what a pair of faults has begun may last.
pub(crate) fn pairs_mend_within(options: &SimulationOptions) -> Duration {
    options.session_timeout * 3
}

/// The longest tick that the members are restarted with: what the processes are told.
pub(crate) fn longest_tick_of_pairs(options: &SimulationOptions) -> Duration {
    options.tick
}

/// The rates with every chance taken out: a pair shows best where nothing else happens.
fn without_chance(rates: FaultRates) -> FaultRates {
    FaultRates {
        late_by: rates.late_by,
        blocked_for: rates.blocked_for,
        isolated_for: rates.isolated_for,
        stalled_for: rates.stalled_for,
        paused_for: rates.paused_for,
        partitioned_for: rates.partitioned_for,
        asleep_for: rates.asleep_for,
        cut_off_for: rates.cut_off_for,
        elected_within: rates.elected_within,
        ..FaultRates::default()
    }
}

/// More than this happens only where something spins.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.at_one_instant = 200_000;
    limits.requests_per_second = 5_000;
    limits.changes = 1_000_000;
    limits.outstanding = 1_000_000;
    limits.wall_clock = Duration::from_secs(600);
    limits
}
