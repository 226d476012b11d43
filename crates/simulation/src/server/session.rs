//! What servers keep of a session: the leader its record, each server its ends of connections.

use std::collections::VecDeque;
use std::time::Duration;

use zookeeper_recipes_protocol::{ConnectRequest, FrameDecoder};

use crate::wire::message::Arriving;

#[derive(Clone, Debug)]
pub(crate) struct SessionRecord {
    /// The timeout that was negotiated last.
    pub(crate) timeout: Duration,
    /// The timeout that the session was opened with. The transaction that opens a session records
    /// it, and a leader that is elected later goes by it.
    pub(crate) opened_with: Duration,
    pub(crate) expires: Duration,
    /// The server through which it came last.
    pub(crate) owner: Option<usize>,
    pub(crate) closing: bool,
}

/// The server's end of a connection that the server has not closed.
#[derive(Debug)]
pub(crate) struct ServerEnd {
    /// Cuts the bytes that come into frames.
    pub(super) frames: FrameDecoder,
    /// The first frame.
    pub(super) greeting: Option<ConnectRequest>,
    /// The answer to the first frame comes so much later.
    pub(super) answered_late: Duration,
    /// How many requests have come.
    pub(super) requests: u64,
    /// The session that the server serves on it, once that is settled.
    pub(crate) session: Option<i64>,
    /// True if the session is read-only, on a server without a leader.
    pub(crate) reads_only: bool,
    /// Requests that came before the session was settled.
    pub(crate) early: VecDeque<Arriving>,
    /// Requests that wait for their turn: reads behind the writes of their own session.
    pub(crate) pipeline: VecDeque<Arriving>,
}

impl ServerEnd {
    /// The end of a new connection, for requests of at most so many bytes.
    pub(super) fn new(largest_request: usize) -> ServerEnd {
        ServerEnd {
            frames: FrameDecoder::new(largest_request),
            greeting: None,
            answered_late: Duration::ZERO,
            requests: 0,
            session: None,
            reads_only: false,
            early: VecDeque::new(),
            pipeline: VecDeque::new(),
        }
    }
}

/// The password that a client has to show when it comes back to a session.
///
/// Apache's server makes the same password of the session's id: `java.util.Random`, seeded with
/// the id and a constant. It keeps nobody out who knows that.
pub(crate) fn password_of(session: i64) -> [u8; 16] {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = ((session ^ 0xB341_5C00) as u64 ^ MULTIPLIER) & MASK;
    let mut password = [0; 16];
    for bytes in password.chunks_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        bytes.copy_from_slice(&((state >> 16) as u32).to_le_bytes());
    }
    password
}
