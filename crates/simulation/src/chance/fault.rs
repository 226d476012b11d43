//! Faults, for chosen requests.

use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_core::ensemble::SessionId;

use crate::record::request_kind::RequestKind;

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The connection breaks before the last byte of the request, which never arrives.
    RequestLost,
    /// The request is applied, then the connection breaks before the last byte of the reply.
    ReplyLost,
    /// The connection breaks after so many bytes of the request, or after all of them.
    RequestCut(usize),
    /// The connection breaks after so many bytes of the reply, or after all of them.
    ReplyCut(usize),
    /// The request is applied, and the server answers that it does not know the outcome.
    OutcomeHidden,
    /// The request takes this much longer to arrive, and all after it on the connection.
    RequestLate(Duration),
    /// The reply takes this much longer to arrive, and all after it on the connection.
    ReplyLate(Duration),
    /// The server expires the session as the request arrives, before it is applied.
    SessionExpired,
    /// The process falls asleep for this long, just after the request was sent.
    Asleep(Duration),
    /// The server refuses the request, because it has too much to do.
    Throttled,
    /// The server is cut off from the others for this long, just after it has answered.
    ///
    /// A follower is [cut off](crate::Faults::cut_off_from_leader), a leader is
    /// [isolated](crate::Faults::isolate_leader).
    CutOff(Duration),
}

impl FaultKind {
    /// The fault, in words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FaultKind::RequestLost | FaultKind::RequestCut(_) => "request lost",
            FaultKind::ReplyLost | FaultKind::ReplyCut(_) => "reply lost",
            FaultKind::OutcomeHidden => "outcome hidden",
            FaultKind::RequestLate(_) => "request late",
            FaultKind::ReplyLate(_) => "reply late",
            FaultKind::SessionExpired => "session expired",
            FaultKind::Asleep(_) => "asleep",
            FaultKind::Throttled => "throttled",
            FaultKind::CutOff(_) => "server cut off",
        }
    }
}

/// A fault that happens once, to one request.
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
    pub(crate) kind: FaultKind,
    process: Option<String>,
    session: Option<SessionId>,
    request: Option<RequestKind>,
    prefix: Option<String>,
    left: u64,
    pub(crate) reconnect_to: Option<usize>,
}

impl Fault {
    /// A fault of the next request. Pings and other requests of the client itself do not count.
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
    pub fn of_process(mut self, process: &str) -> Fault {
        self.process = Some(process.to_owned());
        self
    }

    /// Only with a request of this session.
    pub fn of_session(mut self, session: SessionId) -> Fault {
        self.session = Some(session);
        self
    }

    /// Only with a request of this kind.
    pub fn on(mut self, request: RequestKind) -> Fault {
        self.request = Some(request);
        self
    }

    /// Only with a request on a path that begins with this prefix.
    pub fn under(mut self, prefix: &str) -> Fault {
        self.prefix = Some(prefix.to_owned());
        self
    }

    /// Only with the `nth` request that matches, counted from one.
    pub fn nth(mut self, nth: u64) -> Fault {
        self.left = nth.max(1);
        self
    }

    /// Makes the client try this server first if the fault breaks the connection.
    pub fn reconnecting_to(mut self, server: usize) -> Fault {
        self.reconnect_to = Some(server);
        self
    }

    /// Counts a request that matches. True if the fault happens to it.
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

/// Takes the faults that happen to a request.
pub(crate) fn take(
    waiting: &mut Vec<Fault>,
    process: &str,
    session: SessionId,
    request: RequestKind,
    paths: &[&str],
) -> Vec<Fault> {
    let mut taken = Vec::new();
    for mut fault in std::mem::take(waiting) {
        let meets = fault.meets(process, session, request, paths);
        if meets { &mut taken } else { &mut *waiting }.push(fault);
    }
    taken
}

/// The place at which a message is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// Before any of its bytes.
    Anywhere,
    /// After so many bytes, or after all of them.
    After(usize),
}

impl Cut {
    /// How many bytes of a message of this length arrive.
    pub(crate) fn draw(self, length: usize, rng: &mut Rng) -> usize {
        match self {
            Cut::Anywhere => rng.usize(..length),
            Cut::After(bytes) => bytes.min(length),
        }
    }
}

/// The direction in which a cut lets nothing pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing passes.
    Both,
    /// Nothing passes from clients to servers, or from a follower to its leader.
    Up,
    /// Nothing passes from servers to clients, or from a leader to its follower.
    Down,
}
