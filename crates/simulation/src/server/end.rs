//! A server's end of a connection.

use std::collections::VecDeque;
use std::time::Duration;

use crate::wire::message::Arriving;

/// What a server keeps for a connection that a client has opened and the server has not closed.
#[derive(Debug, Default)]
pub(crate) struct ServerEnd {
    /// The session that the server serves on it, once that is settled.
    pub(crate) session: Option<i64>,
    /// Whether the session is one that only reads, on a server without a leader.
    pub(crate) reads_only: bool,
    /// The session timeout that the client has asked for.
    pub(crate) timeout: Duration,
    /// Requests that came before the session was settled.
    pub(crate) early: VecDeque<Arriving>,
    /// Requests that wait for their turn: reads behind the writes of their own session.
    pub(crate) pipeline: VecDeque<Arriving>,
}
