//! How long a host may take to accept a connection, and then to confirm the session.
//!
//! A hold can be saved until T has passed without a confirmed connection. Until then each host has so
//! little time that the last one is tried within T. From then on all holds are lost, and nothing is
//! urgent. But a server that takes longer than the limit hears of the session with each try, and does
//! not expire it. So the limit grows until the handshake succeeds, or until a try takes so long that
//! the session expires meanwhile.

use std::time::Duration;

use crate::error::Break;
use crate::session::timing::Timing;

/// A host to which nothing is urgent may take this long to accept.
const MOST_TO_ACCEPT: Duration = Duration::from_secs(4);
/// The longest limit, unless two session timeouts are longer.
///
/// It is the longest time by which one host that hangs delays the others in each round.
const LONGEST: Duration = Duration::from_secs(60);

/// The limits of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The time to accept the connection.
    pub(crate) accept: Duration,
    /// The time to accept the connection and to confirm the session.
    pub(crate) handshake: Duration,
    /// The time without a byte before the session is restored.
    pub(crate) silence: Duration,
}

/// The tries since the session was last confirmed and has answered.
#[derive(Debug, Default)]
pub(crate) struct HandshakeLimit {
    /// How often the limit has doubled.
    doublings: u32,
    /// True if a try of this round over the hosts was not urgent, and has timed out.
    has_timed_out: bool,
}

impl HandshakeLimit {
    /// The limits of the next try.
    pub(crate) fn next(&self, timing: &Timing, is_urgent: bool) -> Limits {
        if is_urgent {
            return Limits {
                accept: timing.handshake,
                handshake: timing.handshake,
                silence: timing.silence,
            };
        }
        let longest = LONGEST.max(timing.session * 2);
        let doubled = 2_u32.saturating_pow(self.doublings);
        let handshake = timing.unhurried.saturating_mul(doubled).min(longest);
        Limits {
            accept: handshake.min(MOST_TO_ACCEPT.max(timing.unhurried)),
            handshake,
            silence: handshake.max(timing.silence),
        }
    }

    /// Notes a try that was not urgent and has failed.
    pub(crate) fn failed(&mut self, cause: &Break, limits: Limits) {
        self.has_timed_out |= match cause {
            Break::NoSession(_) | Break::Silent(_) => true,
            // A longer limit would not give the host more time to accept.
            Break::NotConnected(_) => limits.handshake < MOST_TO_ACCEPT,
            _ => false,
        };
    }

    /// Notes that each host has been tried. So each has each limit once, in whatever order.
    pub(crate) fn round_is_over(&mut self) {
        self.doublings += u32::from(self.has_timed_out);
        self.has_timed_out = false;
    }
}
