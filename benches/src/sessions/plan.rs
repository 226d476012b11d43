//! What the fleet does.

use std::time::Duration;

/// How many sessions there are, and what they do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) sessions: usize,
    pub(crate) locks: usize,
    pub(crate) time: Duration,
}

/// The session timeout of the fleet.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(20);

/// The contenders of each lock that is handed on: a holder, and those that wait.
pub(crate) const CONTENDERS: usize = 21;

/// How long the fleet is watched after the death of a member.
pub(crate) const AFTER: Duration = Duration::from_secs(10);

impl Plan {
    /// The number of locks that are handed on.
    pub(crate) fn queues(&self) -> usize {
        (self.sessions / CONTENDERS).max(1)
    }
}
