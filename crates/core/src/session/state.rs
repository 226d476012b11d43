//! The state of a session handle.

use std::fmt;

use crate::server::ensemble::SessionId;
use crate::server::error::SessionEnd;

/// How it stands with a [`Session`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionState {
    /// This ZooKeeper session is open, and its server answers.
    Connected(SessionId),
    /// No answer comes, from the server or through it from its leader; this ZooKeeper session may
    /// live on.
    Suspended(SessionId),
    /// There is no ZooKeeper session, and one is being opened: the first, or the next after one that
    /// has expired.
    Opening,
    /// There will be no further ZooKeeper session.
    Over(SessionEnd),
}

impl fmt::Display for SessionState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionState::Connected(id) => write!(formatter, "connected in session {id}"),
            SessionState::Suspended(id) => write!(formatter, "no answer comes in session {id}"),
            SessionState::Opening => formatter.write_str("a session is being opened"),
            SessionState::Over(end) => write!(formatter, "no session any more: {end}"),
        }
    }
}
