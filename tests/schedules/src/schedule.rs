//! What a seed decides before anything runs.

mod draw;
mod loss;

use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_simulation::{FaultRates, Opcode, SimulationOptions};

use crate::lasting_faults::LastingFaults;
use loss::DataLoss;

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
    /// Whether most holders hold for about as long as a session lasts.
    pub(crate) stays_long: bool,
    /// How long a caller does not poll what it awaits, at most.
    pub(crate) neglects: Option<Duration>,
    /// Whether it is changed how much can be held.
    pub(crate) resizes: bool,
    /// How many want to know who leads.
    pub(crate) observers: usize,
    /// Where the numbers at the end of the names begin.
    pub(crate) first_number: i32,
    /// When the servers lose data, if they do.
    pub(crate) loses_data: Option<DataLoss>,
    /// The faults that never heal, if some are not to.
    pub(crate) lasting: Option<LastingFaults>,
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

/// The numbers of contenders and holds beside the usual contenders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// How many tasks of a process wait for the recipe under test.
    pub(crate) waiters: usize,
    /// How many locks that nobody else wants a session holds.
    pub(crate) holds: usize,
}

impl Schedule {
    /// Makes some faults of this schedule last. What would heal a server of them is left out.
    pub(crate) fn never_heal(&mut self, seed: u64) {
        let mut rng = Rng::with_seed(seed.rotate_left(32));
        if self.options.servers == 1 {
            self.options.servers = 3;
        }
        self.crowd = Crowd::default();
        self.observers = 0;
        self.between_pairs = None;
        self.loses_data = None;
        let rates = &mut self.rates;
        (rates.elected, rates.isolated, rates.cut_off) = (0.0, 0.0, 0.0);
        let lasting = LastingFaults::draw(&self.options, self.troubled, &mut rng);
        if !lasting.lateness().is_zero() {
            rates.overloaded = 0.0;
        }
        self.lasting = Some(lasting);
    }

    /// By when a fault of the last moment has mended.
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
            rates.overloaded_for + rates.handshakes_late_by,
            rates.path_long_for + rates.path_longer_by * 2,
            rates.look_up_late_by,
            pairs_mend_within(&self.options),
            self.data_mend_within(),
            // By then, servers that have lost each other have noticed it.
            self.longest_tick() * (self.options.sync_limit + 3),
        ]
        .into_iter()
        .max()
        .unwrap_or_default()
    }

    /// A client that has seen more than the servers have is refused. T after its lease has run out it
    /// opens another session.
    fn data_mend_within(&self) -> Duration {
        match self.loses_data {
            Some(loss) => loss.within + self.options.session_timeout * 3,
            None => Duration::ZERO,
        }
    }

    /// How long after the loss of all servers a hold can last at most whose znode does not return with
    /// them.
    ///
    /// A lease is shorter than T. A hold that has no watch yet gets it with the next probe, at most
    /// T/10 after its session has continued, and learns of the loss then.
    pub(crate) fn leases_last_at_most(&self) -> Duration {
        self.options.session_timeout * 11 / 10 + self.hands_on_within()
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
    /// asks for another. The rest is the queue's own time: some round trips for each contender
    /// before.
    pub(crate) fn waits_at_most(&self) -> Duration {
        let options = &self.options;
        let dead = options.session_timeout + self.longest_tick() * 2;
        let queue = self.hands_on_within() * (self.processes * self.contenders) as u32;
        dead + Duration::from_secs(5) + queue * 2 + self.learns_within()
    }

    /// How long the processes take at most to learn that servers close the connection when a watch
    /// is taken off.
    ///
    /// Each process learns from three connections, each of which may have cost a session.
    pub(crate) fn learns_within(&self) -> Duration {
        let dead = self.options.session_timeout + self.longest_tick() * 2;
        match self.breaks_connections_at_watches() {
            true => dead * 3 * self.processes as u32,
            false => Duration::ZERO,
        }
    }

    /// How long a process that no lasting fault has hit may take from the call to the hold.
    ///
    /// As [`waits_at_most`](Self::waits_at_most), and:
    /// - A session that reaches some servers only finds one of the others within its timeout. If it
    ///   ends meanwhile, the next one has the same search before it.
    /// - A process that hears no server keeps its session alive until it gives its connection up.
    /// - A follower that lags delays each reply and event. A client leaves it at two fifths of the
    ///   session timeout.
    pub(crate) fn comes_through_within(&self) -> Duration {
        let Some(lasting) = &self.lasting else {
            return self.waits_at_most();
        };
        let options = &self.options;
        let dead = options.session_timeout + options.tick * 2;
        let lag = lasting.longest_lag().min(options.session_timeout * 2 / 5);
        let contenders = (self.processes + lasting.processes()) * self.contenders;
        let usual = self.waits_at_most() + dead * 3 + lag * (6 * contenders as u32);
        match lasting.longest_handshake().is_zero() {
            true => usual,
            false => {
                let hit = (lasting.processes() * self.contenders) as u32;
                usual + self.opens_within() * 2 + self.bars_at_most() * (1 + hit)
            }
        }
    }

    /// How long the contenders of a hold that is lost can bar others while handshakes are slow for good.
    ///
    /// A handshake that its client gives up touches the session. The client waits longer and longer
    /// once T has passed without a server: so it is back, and deletes what is lost, or a try takes so
    /// long that the session expires.
    pub(crate) fn bars_at_most(&self) -> Duration {
        let (timeout, tick) = (self.options.session_timeout, self.longest_tick());
        let longest = self.lasting.as_ref().map(LastingFaults::longest_handshake);
        let longest = longest.unwrap_or_default().min(timeout);
        timeout + self.tries_within(longest) + timeout + tick * 2
    }

    /// How long a process tries to open a session before it begins anew.
    pub(crate) fn connects_within(&self) -> Duration {
        match &self.lasting {
            Some(lasting) if !lasting.lateness().is_zero() => self.opens_within(),
            _ => Duration::from_secs(5),
        }
    }

    /// How long it takes to open a session while all handshakes are slow for good.
    pub(crate) fn opens_within(&self) -> Duration {
        let lateness = self.lasting.as_ref().map(LastingFaults::lateness);
        let timeout = self.options.session_timeout;
        timeout + self.tries_within(lateness.unwrap_or_default())
    }

    /// How long a client tries, once nothing is urgent, until a try takes `enough`: the limit begins
    /// at a second, or at the usual one if that is longer, and doubles after each round over all
    /// servers.
    fn tries_within(&self, enough: Duration) -> Duration {
        let servers = self.options.servers as u32;
        let timeout = self.options.session_timeout;
        let usual = (timeout / (servers + 1)).min(timeout * 2 / 5);
        let mut limit = usual.max(Duration::from_secs(1));
        // Between two tries the client pauses for up to two seconds.
        let round = |limit: Duration| limit * servers + Duration::from_secs(2);
        let mut within = usual + round(limit);
        while limit <= enough {
            limit *= 2;
            within += round(limit);
        }
        within
    }

    /// How long it takes from one holder to the next if nothing goes wrong: some round trips, or
    /// the time from one poll to another.
    pub(crate) fn hands_on_within(&self) -> Duration {
        let options = &self.options;
        let round_trip = *options.network_delay.end() * 2
            + *options.commit_delay.end() * 2
            + *options.follower_lag.end() * 2;
        round_trip * 8 + Duration::from_millis(700)
    }
}

/// How long what a pair of faults has begun may last.
pub(crate) fn pairs_mend_within(options: &SimulationOptions) -> Duration {
    options.session_timeout * 3
}

/// The longest tick that the members are restarted with: what the processes are configured with.
pub(crate) fn longest_tick_of_pairs(options: &SimulationOptions) -> Duration {
    options.tick
}
