//! What a session knows of the host whose connection broke.

use std::time::Duration;

use crate::error::Break;

/// No shorter pause keeps the process busy with looks.
const SHORTEST: Duration = Duration::from_secs(1);
/// 136 years. No clock overflows by two such pauses, and no session lasts for one.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);
/// The pause does not double more often: after 1 s it grows to 17 min, after 5 min to 3.5 days.
const MOST_DOUBLINGS: u32 = 10;

/// Where a session is on its way back.
#[derive(Debug)]
pub(crate) struct WayBack {
    /// The least time between a break and a look, and between two looks, unless moves have
    /// failed. `None` never looks.
    pause: Option<Duration>,
    /// How many moves found that the host hung or broke soon, since one did not. Each doubles the
    /// pause.
    failed: u32,
    /// The host of these moves.
    failed_at: Option<usize>,
    /// When a move led to the host of the present connection.
    returned: Option<Duration>,
    /// The host of the present connection.
    pub(crate) present: Option<usize>,
    /// The host to return to.
    pub(crate) lost: Option<usize>,
    pub(crate) step: Step,
}

/// The step of a session on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// The next look is at `until`.
    Away {
        until: Duration,
    },
    /// A connection to the host is being opened, beside the present one.
    Looking,
    /// The host has accepted a connection. No request is sent before the move.
    Draining,
    /// The session has left this server for the host, which has answered no request yet.
    Moving {
        from: Option<usize>,
    },
    /// The move came to nothing. The server that the session has left is the next one to try.
    Failed {
        from: Option<usize>,
    },
}

impl WayBack {
    pub(crate) fn new(pause: Option<Duration>) -> WayBack {
        WayBack {
            pause: pause.map(|pause| pause.clamp(SHORTEST, LONGEST)),
            failed: 0,
            failed_at: None,
            returned: None,
            present: None,
            lost: None,
            step: Step::Nothing,
        }
    }

    /// The least time until the next look.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let times = 2_u32.pow(self.failed.min(MOST_DOUBLINGS));
        self.pause
            .map(|pause| pause.saturating_mul(times).min(LONGEST))
    }

    /// When to look, if a look is due at all.
    pub(crate) fn look_at(&self) -> Option<Duration> {
        match self.step {
            Step::Away { until } => Some(until),
            _ => None,
        }
    }

    /// True if requests have to wait for the move.
    pub(crate) fn holds_requests(&self) -> bool {
        self.step == Step::Draining
    }

    /// True during a move, until the host has answered a request.
    pub(crate) fn is_moving(&self) -> bool {
        matches!(self.step, Step::Moving { .. })
    }

    /// The host to try next, if not the next one in order.
    pub(crate) fn next_host(&self) -> Option<usize> {
        match self.step {
            Step::Moving { .. } => self.lost,
            // It has served the session until now, and the next one in order may be the lost one.
            Step::Failed { from } => from,
            _ => None,
        }
    }

    /// The session is up at this host.
    pub(crate) fn arrived(&mut self, now: Duration, host: usize) {
        self.present = Some(host);
        if self.lost == Some(host) {
            self.lost = None;
            self.returned = self.is_moving().then_some(now);
        }
    }

    /// The host of the present connection has answered a request.
    pub(crate) fn answered(&mut self) {
        if self.is_moving() {
            self.step = Step::Nothing;
        }
    }

    /// A connection is gone, or could not be opened. `is_confirmed` is true if the host had
    /// confirmed the session.
    pub(crate) fn lost(&mut self, now: Duration, is_confirmed: bool, cause: &Break) {
        let stayed = self.returned.take().map(|at| now.saturating_sub(at));
        let has_failed = match (self.step, stayed) {
            // A host that closes the connection costs no time, and may be behind for a moment only.
            (Step::Moving { .. }, _) => (is_confirmed || hangs(cause)).then_some(true),
            (_, stayed) => stayed.zip(self.pause).map(|(stayed, pause)| stayed < pause),
        };
        self.failed = match has_failed {
            Some(true) => self.failed.saturating_add(1),
            Some(false) => 0,
            None => self.failed,
        };
        self.step = match self.step {
            Step::Moving { from } => Step::Failed { from },
            _ => Step::Nothing,
        };
        let present = self.present.take();
        let broken = present.filter(|_| self.pause.is_some() && !matches!(cause, Break::Left));
        if let Some(host) = broken {
            let lost = *self.lost.get_or_insert(host);
            if self.failed_at.replace(lost) != Some(lost) {
                self.failed = 0;
            }
        }
    }
}

/// True if the session has waited for a connection to the host, or for its word, in vain.
fn hangs(cause: &Break) -> bool {
    matches!(cause, Break::NotConnected(_) | Break::NoSession(_))
}
