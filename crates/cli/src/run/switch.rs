//! The dead man's switch: when the command must be asked to stop, and when it must be killed.

use std::time::Duration;

/// The command is killed so long before the hold runs out.
const BEFORE_THE_END: Duration = Duration::from_millis(20);

/// Knows until when the hold lasts, and what was done to the command.
#[derive(Debug)]
pub(super) struct Switch {
    until: Duration,
    grace: Duration,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The command was asked to stop. No renewal takes that back.
    Stopping,
    Killed,
}

/// What must be done to the command now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    Stop,
    Kill,
}

impl Switch {
    /// A switch that strikes when `grace` is left before `until`.
    pub(super) fn new(until: Duration, grace: Duration) -> Switch {
        Switch {
            until,
            grace,
            phase: Phase::Running,
        }
    }

    /// Notes that the hold lasts until this instant.
    ///
    /// A renewal for a command that was asked to stop changes nothing. An end that is nearer than
    /// the known one counts at any time.
    pub(super) fn lasts(&mut self, until: Duration) {
        if self.phase == Phase::Running || until < self.until {
            self.until = until;
        }
    }

    /// What must be done at this instant. Each blow is due once.
    pub(super) fn due(&mut self, now: Duration) -> Option<Blow> {
        match self.phase {
            Phase::Running | Phase::Stopping if now + BEFORE_THE_END >= self.until => {
                self.phase = Phase::Killed;
                Some(Blow::Kill)
            }
            Phase::Running if now + self.grace >= self.until => {
                self.phase = Phase::Stopping;
                Some(Blow::Stop)
            }
            _ => None,
        }
    }

    /// How long nothing is due, if nothing renews the hold.
    pub(super) fn quiet(&self, now: Duration) -> Duration {
        let before = match self.phase {
            Phase::Running => self.grace.max(BEFORE_THE_END),
            Phase::Stopping => BEFORE_THE_END,
            Phase::Killed => return Duration::MAX,
        };
        self.until.saturating_sub(now + before)
    }

    /// Until when the hold lasts.
    pub(super) fn until(&self) -> Duration {
        self.until
    }

    /// True if the command was asked to stop or killed.
    pub(super) fn has_struck(&self) -> bool {
        self.phase != Phase::Running
    }
}

#[cfg(test)]
#[path = "../../tests/unit/switch.rs"]
mod tests;
