//! The state of a session handle.

use std::fmt;

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
