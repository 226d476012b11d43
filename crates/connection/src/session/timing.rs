//! The time limits of a session. All follow from its timeout T.

use std::time::Duration;

/// A host that does not confirm a session within this time is given up, however long T is.
///
/// This holds until T has passed without a server.
const MOST_HANDSHAKE: Duration = Duration::from_secs(10);

/// A host has at least this time if nothing is urgent, however short T is.
///
/// Nothing expires until there is a session, and the servers may grant more than is asked for.
const LEAST_UNHURRIED: Duration = Duration::from_secs(1);

/// The limits follow from at most this many hosts, however many addresses the names have.
const MOST_HOSTS: u32 = 9;

/// The limits follow from at least this T, so that no T keeps the process busy with connects.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest T that the protocol has a number for.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// The time limits for one session timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// T, within its bounds.
    pub(crate) session: Duration,
    /// A ping is sent after this time without a request.
    pub(crate) ping_after: Duration,
    /// The connection is given up after this time without a byte from the server.
    ///
    /// Three fifths of T are left to reach another member before the session can expire.
    pub(crate) silence: Duration,
    /// The connection is given up if the oldest request or ping gets no reply for this time.
    pub(crate) unanswered: Duration,
    /// The connection is given up if the server has not confirmed the session by then.
    pub(crate) handshake: Duration,
    /// As `handshake`, if no hold can be saved: the limit of the first round.
    pub(crate) unhurried: Duration,
}

impl Timing {
    /// The limits for the timeout `session`, with `hosts` members to try.
    ///
    /// More than nine count as nine, so that each has a tenth of T.
    pub(crate) fn of(session: Duration, hosts: usize) -> Timing {
        let session = session.clamp(SHORTEST, LONGEST);
        let hosts = u32::try_from(hosts).unwrap_or(u32::MAX).min(MOST_HOSTS);
        let silence = session * 2 / 5;
        // All hosts but one can be silent, and the last one is tried within T.
        let handshake = (session / (hosts + 1)).min(silence).min(MOST_HANDSHAKE);
        Timing {
            session,
            ping_after: session * 3 / 20,
            silence,
            unanswered: session,
            handshake,
            unhurried: handshake.max(LEAST_UNHURRIED),
        }
    }
}
