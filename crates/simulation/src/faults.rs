//! What a simulation is to break: chosen requests, and chances under the seed.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::SessionId;

use super::counters::RequestKind;

/// Which way a cut goes: what is cut off can no longer be told of, no longer tell, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing passes.
    Both,
    /// Nothing passes from clients to servers, or from a follower to its leader.
    Up,
    /// Nothing passes from servers to clients, or from a leader to its follower.
    Down,
}

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The connection breaks and the request never arrives.
    RequestLost,
    /// The request is applied, then the connection breaks and the reply never arrives.
    ReplyLost,
    /// The request takes this much longer to arrive, and all after it on the connection.
    RequestLate(Duration),
    /// The reply takes this much longer to arrive, and all after it on the connection.
    ReplyLate(Duration),
    /// The server expires the session as the request arrives, before it is applied.
    SessionExpired,
    /// The process falls asleep for this long, just after the request was sent.
    Asleep(Duration),
    /// The server refuses the request, having too much to do.
    Throttled,
    /// The server is cut off from the others for this long, just after it has answered: as by
    /// [`cut_off_from_leader`](super::Faults::cut_off_from_leader) where it follows, as by
    /// [`isolate_leader`](super::Faults::isolate_leader) where it leads.
    CutOff(Duration),
}

/// One thing to go wrong, once, with one request.
///
/// ```
/// use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind};
///
/// // The reply to the second create that "worker" sends below /locks never arrives.
/// let fault = Fault::new(FaultKind::ReplyLost)
///     .of_process("worker")
///     .on(RequestKind::Create)
///     .under("/locks")
///     .nth(2);
/// # let _ = fault;
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    pub(super) kind: FaultKind,
    process: Option<String>,
    session: Option<SessionId>,
    request: Option<RequestKind>,
    prefix: Option<String>,
    left: u64,
    pub(super) reconnect_to: Option<usize>,
}

impl Fault {
    /// Goes wrong with the next request that somebody asks for, whichever.
    pub fn new(kind: FaultKind) -> Fault {
        Fault {
            kind,
            process: None,
            session: None,
            request: None,
            prefix: None,
            left: 1,
            reconnect_to: None,
        }
    }

    /// Only with a request of this process.
    pub fn of_process(self, process: &str) -> Fault {
        Fault {
            process: Some(process.to_owned()),
            ..self
        }
    }

    /// Only with a request of this session.
    pub fn of_session(self, session: SessionId) -> Fault {
        Fault {
            session: Some(session),
            ..self
        }
    }

    /// Only with a request of this kind.
    pub fn on(self, request: RequestKind) -> Fault {
        Fault {
            request: Some(request),
            ..self
        }
    }

    /// Only with a request on a path that begins so.
    pub fn under(self, prefix: &str) -> Fault {
        Fault {
            prefix: Some(prefix.to_owned()),
            ..self
        }
    }

    /// Not with the first that matches, but with the `nth`, counted from one.
    pub fn nth(self, nth: u64) -> Fault {
        Fault {
            left: nth.max(1),
            ..self
        }
    }

    /// Where the connection breaks by this: the server that the client tries first afterwards.
    pub fn reconnecting_to(self, server: usize) -> Fault {
        Fault {
            reconnect_to: Some(server),
            ..self
        }
    }

    /// Counts a request that matches. Whether its turn has come.
    fn meets(
        &mut self,
        process: &str,
        session: SessionId,
        request: RequestKind,
        paths: &[&str],
    ) -> bool {
        let matches = self.process.as_deref().is_none_or(|it| it == process)
            && self.session.is_none_or(|it| it == session)
            && self
                .request
                .map_or(request.is_asked_for(), |it| it == request)
            && self
                .prefix
                .as_deref()
                .is_none_or(|prefix| paths.iter().any(|path| path.starts_with(prefix)));
        if matches {
            self.left -= 1;
        }
        matches && self.left == 0
    }
}

/// The faults that wait for their request.
#[derive(Debug, Default)]
pub(super) struct Pending {
    faults: Vec<Fault>,
}

impl Pending {
    pub(super) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.faults.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.faults.len()
    }

    /// The faults whose request this is. They are used up by it.
    pub(super) fn take(
        &mut self,
        process: &str,
        session: SessionId,
        request: RequestKind,
        paths: &[&str],
    ) -> Vec<Fault> {
        let mut taken = Vec::new();
        let mut index = 0;
        while index < self.faults.len() {
            if self.faults[index].meets(process, session, request, paths) {
                taken.push(self.faults.remove(index));
            } else {
                index += 1;
            }
        }
        taken
    }
}

/// The chances of things going wrong, each under the seed. All zero by default.
///
/// Those *per request* are probabilities; those *per second* are rates, for each process,
/// session or server that it can befall.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultRates {
    /// Per request: the connection breaks and the request never arrives.
    pub request_lost: f64,
    /// Per request: it is applied, then the connection breaks and the reply never arrives.
    pub reply_lost: f64,
    /// Per request: the server refuses it, having too much to do.
    pub throttled: f64,
    /// Per request: it takes longer to arrive, by up to [`late_by`](Self::late_by).
    pub request_late: f64,
    /// Per reply: it takes longer to arrive, by up to [`late_by`](Self::late_by).
    pub reply_late: f64,
    /// Per notification: it takes longer to arrive, by up to [`late_by`](Self::late_by).
    pub event_late: f64,
    /// How late what is late can be.
    pub late_by: Duration,
    /// Per second and session: its connection breaks, with whatever is in flight.
    pub disconnected: f64,
    /// Per second and session: the server expires it.
    pub expired: f64,
    /// Per reconnect: it is answered with a new session, though the old one may live on.
    pub forgotten: f64,
    /// Per reconnect to a session that is over: it is answered with a new session.
    pub replaced: f64,
    /// Per second and process: what its sessions do in the background stands still, and so do
    /// their clients, for up to [`blocked_for`](Self::blocked_for).
    pub blocked: f64,
    /// How long the sessions of a process can stand still.
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
    /// Per cut of a process or a follower: it goes one way only, whichever.
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
    /// Per second and server: it stands still for up to [`paused_for`](Self::paused_for), but not
    /// so long that the others give it up.
    pub paused: f64,
    /// How long a server can stand still.
    pub paused_for: Duration,
    /// Per second: the leader falls and another is elected.
    pub elected: f64,
    /// How long an election can take.
    pub elected_within: Duration,
}

impl FaultRates {
    /// Whether there is anything to roll the dice for as time goes by.
    pub(super) fn any_per_second(&self) -> bool {
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
            self.elected,
        ]
        .iter()
        .any(|rate| *rate > 0.0)
    }
}
