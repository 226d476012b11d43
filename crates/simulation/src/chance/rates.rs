//! The rates of faults that happen by chance.

use std::time::Duration;

/// The rates of faults that happen by chance, under the seed. All are zero by default.
///
/// A rate *per request* is a probability. A rate *per second* counts for each process, session or
/// server to which the fault can happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultRates {
    /// Per request: the connection breaks and the request never arrives.
    pub request_lost: f64,
    /// Per request: it is applied, then the connection breaks and the reply never arrives.
    pub reply_lost: f64,
    /// Per write: it is applied, and the server answers that it does not know the outcome.
    pub outcome_hidden: f64,
    /// Per request: the server refuses it, because it has too much to do.
    pub throttled: f64,
    /// Per request: it takes longer to arrive, by up to [`late_by`](Self::late_by).
    pub request_late: f64,
    /// Per reply: it takes longer to arrive, by up to [`late_by`](Self::late_by).
    pub reply_late: f64,
    /// Per notification: it takes longer to arrive, by up to [`late_by`](Self::late_by).
    pub event_late: f64,
    /// The longest delay of a late message.
    pub late_by: Duration,
    /// Per second and session: its connection breaks. Messages in flight may or may not arrive.
    pub disconnected: f64,
    /// Per second and session: the server expires it.
    pub expired: f64,
    /// Per reconnect: a server answers it with a new session, and the old one may still live.
    pub forgotten: f64,
    /// Per reconnect to a session that is over: a server answers it with a new session.
    pub replaced: f64,
    /// Per second and process: the background tasks of its sessions, and their clients, pause
    /// for up to [`blocked_for`](Self::blocked_for).
    pub blocked: f64,
    /// How long the sessions of a process can pause.
    pub blocked_for: Duration,
    /// Per second and process: it is cut off from all servers, for up to
    /// [`partitioned_for`](Self::partitioned_for).
    pub partitioned: f64,
    /// How long a process can be cut off.
    pub partitioned_for: Duration,
    /// Per second and process: it falls asleep, for up to [`asleep_for`](Self::asleep_for).
    pub asleep: f64,
    /// How long a process can sleep.
    pub asleep_for: Duration,
    /// Per second and follower: it is cut off from the leader, for up to
    /// [`cut_off_for`](Self::cut_off_for).
    pub cut_off: f64,
    /// How long a follower can be cut off.
    pub cut_off_for: Duration,
    /// Per cut of a process or a follower: it is in one direction only, which is random.
    pub one_way: f64,
    /// Per second: the leader is cut off from all its followers, for up to
    /// [`isolated_for`](Self::isolated_for).
    pub isolated: f64,
    /// How long a leader can be cut off.
    pub isolated_for: Duration,
    /// Per second: nothing is committed for up to [`stalled_for`](Self::stalled_for).
    pub stalled: f64,
    /// How long commits can stall.
    pub stalled_for: Duration,
    /// Per second and server: it pauses for up to [`paused_for`](Self::paused_for), but not
    /// so long that the others give it up.
    pub paused: f64,
    /// How long a server can pause.
    pub paused_for: Duration,
    /// Per second: the servers have too much to do, and answer requests for a session later, by up to
    /// [`handshakes_late_by`](Self::handshakes_late_by), for up to
    /// [`overloaded_for`](Self::overloaded_for). Half the time it is one server, and half the time
    /// all.
    pub overloaded: f64,
    /// The longest delay of an answer to a request for a session.
    pub handshakes_late_by: Duration,
    /// How long the servers can have too much to do.
    pub overloaded_for: Duration,
    /// Per second and process: each of its messages takes longer, both ways, by up to
    /// [`path_longer_by`](Self::path_longer_by), for up to [`path_long_for`](Self::path_long_for).
    pub path_long: f64,
    /// The longest delay of each message, each way.
    pub path_longer_by: Duration,
    /// How long the path of a process can be long.
    pub path_long_for: Duration,
    /// Per look-up of a name: it fails.
    pub look_up_failed: f64,
    /// Per look-up of a name: it takes longer, by up to [`look_up_late_by`](Self::look_up_late_by).
    pub look_up_late: f64,
    /// The longest delay of a look-up.
    pub look_up_late_by: Duration,
    /// Per second and server: it gets another address, and its connections break. Nobody answers at
    /// the old address.
    pub moved: f64,
    /// Per second: the leader falls and another is elected.
    pub elected: f64,
    /// How long an election can take.
    pub elected_within: Duration,
}

impl FaultRates {
    /// True if any rate per second is above zero.
    pub(crate) fn any_per_second(&self) -> bool {
        [
            self.disconnected,
            self.expired,
            self.partitioned,
            self.asleep,
            self.blocked,
            self.cut_off,
            self.isolated,
            self.stalled,
            self.paused,
            self.overloaded,
            self.path_long,
            self.moved,
            self.elected,
        ]
        .iter()
        .any(|rate| *rate > 0.0)
    }
}
