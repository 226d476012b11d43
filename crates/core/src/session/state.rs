//! The state and the health of a session handle.

use std::fmt;
use std::time::Duration;

use crate::server::ensemble::SessionId;
use crate::server::error::SessionEnd;

/// The state of a [`Session`](crate::Session).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionState {
    /// This ZooKeeper session is open, and its server answers.
    Connected(SessionId),
    /// The server does not answer, or its leader does not answer it.
    ///
    /// This ZooKeeper session may still be alive.
    Suspended(SessionId),
    /// No ZooKeeper session is open, and one is being opened.
    ///
    /// It is the first session, or the next session after an expired one.
    Opening,
    /// No further ZooKeeper session will be opened.
    Ended(SessionEnd),
}

impl fmt::Display for SessionState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionState::Connected(id) => write!(formatter, "connected in session {id}"),
            SessionState::Suspended(id) => write!(formatter, "no server answers in session {id}"),
            SessionState::Opening => formatter.write_str("a session is being opened"),
            SessionState::Ended(end) => {
                write!(formatter, "no session will be opened any more: {end}")
            }
        }
    }
}

/// The health of a [`Session`](crate::Session), as this process knows it.
///
/// [`Session::health`](crate::Session::health) makes it, for health checks and for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionHealth {
    /// The state of the session.
    pub state: SessionState,
    /// How long the holds of the session last if no server answers any more.
    ///
    /// It is zero if no ZooKeeper session is open.
    pub lease_left: Duration,
    /// How long ago a server last answered through the leader.
    ///
    /// At most a tenth of the session timeout and a round trip while all is well. `None` if no
    /// ZooKeeper session is open, or no answer has come in it yet.
    pub last_answer: Option<Duration>,
}

impl fmt::Display for SessionHealth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SessionHealth {
            state, lease_left, ..
        } = self;
        write!(formatter, "{state}, {lease_left:.1?} of the lease left")?;
        match self.last_answer {
            Some(ago) => write!(formatter, ", last answer {ago:.1?} ago"),
            None => formatter.write_str(", no answer yet"),
        }
    }
}
