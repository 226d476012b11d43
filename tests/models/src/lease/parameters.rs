//! What a check of the model varies: the servers' times, and the client's rule.

use super::Age;

/// The servers' times, in units.
#[derive(Clone, Copy, Debug)]
pub struct Servers {
    /// T, the session timeout.
    pub timeout: Age,
    /// The tick: an even number of units.
    pub tick: Age,
    /// How much later than half a tick after the last ping the next one may come.
    pub jitter: Age,
    /// For how long packets of the followers reach a leader that they do not hear any more.
    pub late_packets: Age,
    /// How much time an isolated leader loses by standing still. Half a tick and the jitter at most.
    ///
    /// One loop of the leader pings the followers each half tick, and checks each tick who has
    /// answered. So a leader that loses no time answers for a tick after the election of another
    /// leader at most.
    pub leader_loses: Age,
    /// A majority of the followers restarts, and elects another leader at once.
    pub followers_restart: bool,
    /// For how long an isolated leader pauses before it answers; then it answers for a tick.
    ///
    /// Zero: it answers from the beginning.
    pub stands_still: Age,
    /// How many pings may be under way to a follower, with answers queued behind them.
    ///
    /// Zero: a ping arrives at once, except for the jitter.
    pub pings_under_way: u8,
    /// The client may also be connected to an observer behind an observer master.
    ///
    /// Of the two pings on the way of a touch, the observer master's is in time: only the sum of
    /// the two delays matters.
    pub observers: bool,
    /// Keeps the age of a covered contact, and elects at any time that the adversary chooses.
    pub unreduced: bool,
}

impl Servers {
    /// Servers with the default `syncLimit`, and pings that are late by one unit at most.
    pub fn new(timeout: Age, tick: Age) -> Self {
        Self {
            timeout,
            tick,
            jitter: 1,
            late_packets: 0,
            leader_loses: Age::MAX,
            followers_restart: false,
            stands_still: 0,
            pings_under_way: 0,
            observers: false,
            unreduced: false,
        }
    }

    /// Whether the rounding to whole units leaves a rule its room: to the wait, against the time
    /// between two pings, and to the margin, against the time that an isolated leader answers.
    pub fn leave_room_to(&self, rule: &Rule) -> bool {
        let answers_too_long = self.isolated_limit() - self.election();
        rule.wait > self.touch_delay() && self.timeout + rule.wait > rule.lease + answers_too_long
    }

    /// How long a member stays with a silent one: `syncLimit`, five ticks by default.
    pub(super) fn sync_limit(&self) -> Age {
        5 * self.tick
    }

    /// The longest time between two pings.
    pub(super) fn ping_gap(&self) -> Age {
        self.tick / 2 + self.jitter
    }

    /// The longest time until the leader hears what the client's server has heard.
    fn touch_delay(&self) -> Age {
        match self.observers {
            true => self.tick / 2 + self.ping_gap(),
            false => self.ping_gap(),
        }
    }

    /// How long an isolated leader answers. The isolation begins as late after a ping as it can.
    pub(super) fn isolated_limit(&self) -> Age {
        let limit = match self.stands_still {
            0 => self.sync_limit(),
            stands_still => stands_still,
        };
        let after_a_ping = self.ping_gap() - self.leader_loses.min(self.ping_gap());
        limit + self.tick + self.late_packets - after_a_ping
    }

    /// The longest time between the isolation and the election of another leader that the
    /// adversary must wait.
    pub(super) fn election(&self) -> Age {
        match self.followers_restart {
            true => 0,
            false => self.sync_limit() - self.ping_gap(),
        }
    }

    /// The age of a touch at which the session has been expired, the rounding included.
    pub(super) fn expired(&self) -> Age {
        self.timeout + self.tick
    }
}

/// From which moment of a contact the lease counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CountedFrom {
    Sending,
    Answer,
}

/// From which moment of a contact its confirming request waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WaitFrom {
    /// The sending of the contact's request.
    Sending,
    Answer,
}

/// Which answered request proves a reconnect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Proof {
    /// A write: only a leader with a quorum commits it.
    Write,
    /// A sync: an isolated leader answers it too.
    Sync,
}

/// The client's rule: which contact its lease counts from, and for how long it runs.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// How many requests must be answered, the contact's own included.
    pub answers: usize,
    /// How long the second request waits.
    pub wait: Age,
    pub wait_from: WaitFrom,
    /// From where the lease counts.
    pub counted_from: CountedFrom,
    /// How long the lease runs: T - margin.
    pub lease: Age,
    pub proof: Proof,
    /// Counts a contact only if the lease still runs as it is answered.
    pub only_while_it_runs: bool,
}

impl Rule {
    /// One answer renews the lease as long as it runs, with a margin of a third of T.
    pub fn one_answer(servers: &Servers) -> Self {
        Self {
            answers: 1,
            wait: 0,
            only_while_it_runs: true,
            ..Self::confirmed(servers, 0, u32::from(servers.timeout) * 40 / 3)
        }
    }

    /// The rule of the lease, for a tick that the user has set.
    pub fn tick_told(servers: &Servers) -> Self {
        let (timeout, tick) = (u32::from(servers.timeout), u32::from(servers.tick));
        Self::confirmed(servers, 40 * tick + timeout, 20 * tick + timeout)
    }

    /// The rule of the lease, for a tick that was not set and is taken to be `assumed`.
    pub fn tick_assumed(servers: &Servers, assumed: Age) -> Self {
        let timeout = u32::from(servers.timeout);
        let assumed = u32::from(assumed.min(servers.timeout / 2));
        let wait = 11 * timeout;
        let margin = (60 * assumed + 2 * timeout).saturating_sub(wait);
        Self::confirmed(servers, wait, margin.max(10 * timeout))
    }

    /// A contact counts once another request, sent `wait` after its answer, has been answered.
    ///
    /// `wait` and `margin` are in fortieths of a unit. The client's clock may be wrong by 1 %: it
    /// is taken to be fast for the wait and slow for the lease, and both are rounded to the worse.
    fn confirmed(servers: &Servers, wait: u32, margin: u32) -> Self {
        let lease = 40 * u32::from(servers.timeout) - margin;
        Self {
            answers: 2,
            wait: (99 * wait / 4000) as Age,
            wait_from: WaitFrom::Answer,
            counted_from: CountedFrom::Sending,
            lease: (101 * lease).div_ceil(4000) as Age,
            proof: Proof::Write,
            only_while_it_runs: false,
        }
    }
}

/// The servers and the rule, for `stateright` to check.
#[derive(Clone, Copy, Debug)]
pub struct LeaseModel {
    pub servers: Servers,
    pub rule: Rule,
}
