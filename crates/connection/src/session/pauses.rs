//! The pauses between the tries to connect.

use std::time::Duration;

use fastrand::Rng;

/// The longest pause after the first round over the hosts that failed.
const MAX_FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two rounds.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause before a broken connection is replaced.
///
/// A member that dies breaks the connections of many sessions at the same moment.
const MAX_PAUSE_AFTER_BREAK: Duration = Duration::from_millis(50);

/// The longest pause between two rounds, for this session timeout.
pub(crate) fn longest_pause(session_timeout: Duration) -> Duration {
    MAX_PAUSE.min(session_timeout / 6)
}

/// The pauses between the tries.
///
/// There is none within a round, so that a session moves at once if one member dies. Each pause is
/// drawn from zero to its limit ("full jitter"), so that the sessions of many processes do not come
/// back at the same moment.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// How many rounds have failed since a server last answered a request.
    rounds: u32,
    /// True if a try or a connection has failed since then.
    ///
    /// A server that confirms each session and then breaks it is no reason for a shorter pause than
    /// after other failures.
    pub(crate) has_failed: bool,
    random: Rng,
}

impl Pauses {
    /// The pauses are drawn from `seed`.
    pub(crate) fn new(seed: u64) -> Pauses {
        Pauses {
            rounds: 0,
            has_failed: false,
            random: Rng::with_seed(seed),
        }
    }

    /// Notes that a connection has lasted for the longest pause, and has answered a request.
    pub(crate) fn answered(&mut self) {
        self.rounds = 0;
        self.has_failed = false;
    }

    /// The pause after a round in which each host failed.
    ///
    /// Its limit doubles with each round. It is at most a sixth of the session timeout, so that no
    /// pause loses the session.
    pub(crate) fn after_a_round(&mut self, session_timeout: Duration) -> Duration {
        let limit = MAX_FIRST_PAUSE.saturating_mul(1 << self.rounds.min(10));
        self.rounds = self.rounds.saturating_add(1);
        self.draw(limit.min(longest_pause(session_timeout)))
    }

    /// The pause after the break of a connection that was up.
    pub(crate) fn after_a_break(&mut self, session_timeout: Duration) -> Duration {
        self.draw(MAX_PAUSE_AFTER_BREAK.min(session_timeout / 20))
    }

    /// A pause of up to this limit.
    fn draw(&mut self, limit: Duration) -> Duration {
        let nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.u64(0..=nanoseconds))
    }
}

#[cfg(test)]
#[path = "../../tests/unit/pauses.rs"]
mod tests;
