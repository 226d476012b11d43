//! The time limits of a session. All follow from its timeout T.

use std::time::Duration;

use crate::error::DisconnectReason;

/// A host that does not confirm a session within this time is given up, however long T is.
///
/// This holds until T has passed without a server.
const MAX_URGENT_HANDSHAKE: Duration = Duration::from_secs(10);

/// A host has at least this time if nothing is urgent, however short T is.
///
/// Nothing expires until there is a session, and the servers may grant more than is asked for.
const MIN_UNHURRIED_HANDSHAKE: Duration = Duration::from_secs(1);

/// The limits follow from at most this many hosts, however many addresses the names have.
const MAX_HOSTS: u32 = 9;

/// The limits follow from at least this T, so that no T keeps the process busy with connects.
const MIN_TIMEOUT: Duration = Duration::from_millis(100);
/// The longest T that the protocol has a number for.
const MAX_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// A host to which nothing is urgent may take this long to accept.
const MAX_ACCEPT: Duration = Duration::from_secs(4);
/// The longest handshake, unless two session timeouts are longer.
///
/// It is the longest time by which one host that hangs delays the others in each round.
const MAX_HANDSHAKE: Duration = Duration::from_secs(60);

/// The time limits for one session timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// T, within its bounds.
    ///
    /// The connection is given up if the oldest request or ping gets no reply for this time.
    pub(crate) session: Duration,
    /// A ping is sent after this time without a request.
    pub(crate) ping_after: Duration,
    /// The connection is given up after this time without a byte from the server.
    ///
    /// Three fifths of T are left to reach another member before the session can expire.
    pub(crate) silence: Duration,
    /// The connection is given up if the server has not confirmed the session by then.
    handshake: Duration,
    /// As `handshake`, if no hold can be saved: the limit of the first round.
    unhurried: Duration,
}

impl Timing {
    /// The limits for the timeout `session`, with `hosts` members to try.
    ///
    /// More than nine count as nine, so that each has a tenth of T.
    pub(crate) fn of(session: Duration, hosts: usize) -> Timing {
        let session = session.clamp(MIN_TIMEOUT, MAX_TIMEOUT);
        let hosts = u32::try_from(hosts).unwrap_or(u32::MAX).min(MAX_HOSTS);
        let silence = session * 2 / 5;
        // All hosts but one can be silent, and the last one is tried within T.
        let handshake = (session / (hosts + 1))
            .min(silence)
            .min(MAX_URGENT_HANDSHAKE);
        Timing {
            session,
            ping_after: session * 3 / 20,
            silence,
            handshake,
            unhurried: handshake.max(MIN_UNHURRIED_HANDSHAKE),
        }
    }
}

/// How long a host may take to accept a connection, and then to confirm the session.
///
/// A hold can be saved until T has passed without a confirmed connection. Until then each host has so
/// little time that the last one is tried within T. From then on all holds are lost, and nothing is
/// urgent. But a server that takes longer than the limit hears of the session with each try, and does
/// not expire it. So the limit grows until the handshake succeeds, or until a try takes so long that
/// the session expires meanwhile.
#[derive(Debug, Default)]
pub(crate) struct HandshakeLimit {
    /// The time of the present try to accept the connection.
    pub(crate) accept: Duration,
    /// The time of the present try to accept the connection and to confirm the session.
    pub(crate) handshake: Duration,
    /// How often the limit has doubled since the session was last confirmed and has answered.
    doublings: u32,
    /// True if a try of this round over the hosts was not urgent, and has timed out.
    has_timed_out: bool,
}

impl HandshakeLimit {
    /// Begins a try.
    pub(crate) fn begin(&mut self, timing: &Timing, is_urgent: bool) {
        let longest = MAX_HANDSHAKE.max(timing.session * 2);
        let doubled = 2_u32.saturating_pow(self.doublings);
        self.handshake = match is_urgent {
            true => timing.handshake,
            false => timing.unhurried.saturating_mul(doubled).min(longest),
        };
        self.accept = self.handshake.min(MAX_ACCEPT.max(timing.unhurried));
    }

    /// Notes that the present try was not urgent and has failed.
    pub(crate) fn failed(&mut self, cause: &DisconnectReason) {
        self.has_timed_out |= match cause {
            DisconnectReason::NoSession(_)
            | DisconnectReason::Silent(_)
            | DisconnectReason::Unanswered { .. } => true,
            // A longer limit would not give the host more time to accept.
            DisconnectReason::NotConnected(_) => self.handshake < MAX_ACCEPT,
            _ => false,
        };
    }

    /// Notes that each host has been tried. So each has each limit once, in whatever order.
    pub(crate) fn round_is_over(&mut self) {
        self.doublings += u32::from(self.has_timed_out);
        self.has_timed_out = false;
    }

    /// Notes that a server that has confirmed the session has answered.
    pub(crate) fn answered(&mut self) {
        self.doublings = 0;
        self.has_timed_out = false;
    }
}
