//! The time limits of a session. All follow from its timeout T.

use std::time::Duration;

/// A host that opens no session within this time is given up, however long the session timeout is.
const MOST_HANDSHAKE: Duration = Duration::from_secs(10);

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
}

impl Timing {
    /// The limits for the timeout `session`, with `hosts` members to try.
    pub(crate) fn of(session: Duration, hosts: usize) -> Timing {
        let session = session.clamp(SHORTEST, LONGEST);
        let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
        let silence = session * 2 / 5;
        Timing {
            session,
            ping_after: session * 3 / 20,
            silence,
            unanswered: session,
            // All hosts but one can be silent, and the last one is tried within T.
            handshake: (session / hosts.saturating_add(1))
                .min(silence)
                .min(MOST_HANDSHAKE),
        }
    }
}
