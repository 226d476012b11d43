//! What a session knows of the host whose connection broke.

use std::time::Duration;

/// No shorter pause keeps the process busy with looks.
const SHORTEST: Duration = Duration::from_secs(1);
/// 136 years. No clock overflows by two such pauses, and no session lasts for one.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// Where a session is on its way back.
#[derive(Debug)]
pub(crate) struct WayBack {
    /// The least time between a break and a look, and between two looks. `None` never looks.
    pub(crate) pause: Option<Duration>,
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
    /// The session has left its server for the host.
    Moving,
}

impl WayBack {
    pub(crate) fn new(pause: Option<Duration>) -> WayBack {
        WayBack {
            pause: pause.map(|pause| pause.clamp(SHORTEST, LONGEST)),
            present: None,
            lost: None,
            step: Step::Nothing,
        }
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
        self.step == Step::Moving
    }

    /// The host of the move, once.
    pub(crate) fn next_host(&self) -> Option<usize> {
        self.lost.filter(|_| self.is_moving())
    }

    /// A connection is gone, or could not be opened. `broke` is true if it had served the session,
    /// and this process did not leave it.
    pub(crate) fn lost(&mut self, broke: bool) {
        self.step = Step::Nothing;
        if let (true, Some(host)) = (broke && self.pause.is_some(), self.present) {
            self.lost.get_or_insert(host);
        }
        self.present = None;
    }
}
