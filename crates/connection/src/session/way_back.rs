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
    /// How many moves in a row led to a host that hung, or that broke soon. Each doubles the pause.
    failed: u32,
    /// The host of these moves.
    failed_at: Option<usize>,
    /// When the session came up at the present host, and whether by a move.
    arrival: Option<(Duration, bool)>,
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
    /// The session has left this server for the host.
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
            arrival: None,
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

    /// True if the present try is the move itself.
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
        self.arrival = Some((now, self.is_moving()));
        self.lost = self.lost.filter(|lost| *lost != host);
    }

    /// A connection is gone, or could not be opened. `is_confirmed` is true if the host had
    /// confirmed the session, and had not answered yet.
    pub(crate) fn lost(&mut self, now: Duration, is_confirmed: bool, cause: &Break) {
        self.judge(now, is_confirmed, cause);
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

    /// Counts the move if it was in vain, and forgives a host that has served the session for long.
    fn judge(&mut self, now: Duration, is_confirmed: bool, cause: &Break) {
        let Some((at, by_move)) = self.arrival.take() else {
            // A host that closes the connection costs no time, and may be behind for a moment only.
            if self.is_moving() && (is_confirmed || hangs(cause)) {
                self.failed = self.failed.saturating_add(1);
            }
            return;
        };
        let is_short = self
            .pause
            .is_some_and(|pause| now.saturating_sub(at) < pause);
        match is_short {
            true if by_move => self.failed = self.failed.saturating_add(1),
            false if self.present == self.failed_at => self.failed = 0,
            _ => {}
        }
    }
}

/// True if the session has waited for a connection to the host, or for its word, in vain.
fn hangs(cause: &Break) -> bool {
    matches!(cause, Break::NotConnected(_) | Break::NoSession(_))
}
