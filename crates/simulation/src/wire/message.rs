//! The messages on a connection, both ways: bytes of frames, and what the simulation notes of them.

use std::time::Duration;

use zookeeper_recipes_protocol::{ErrorCode, EventType, ReplyBody, Request};

use crate::chance::fault::Cut;
use crate::record::request_kind::RequestKind;

/// The answer to a request.
pub(crate) type Answer = Result<ReplyBody, ErrorCode>;

/// From a client to a server, on one connection, in order.
#[derive(Debug)]
pub(crate) enum Upward {
    /// The bytes of a frame, or those before a cut, with the fate of the request in the frame.
    Bytes(Vec<u8>, Fate),
    /// The client has closed the connection.
    Close,
}

/// The faults of a request at its server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) cut_reply: Option<Cut>,
    pub(crate) hide_outcome: bool,
    pub(crate) delay_reply: Duration,
    pub(crate) expire: bool,
    pub(crate) throttled: bool,
    /// The server is cut off from the others for this long, once it has answered.
    pub(crate) cut_off: Option<Duration>,
}

/// A request that a server has read from a connection.
#[derive(Debug)]
pub(crate) struct Arriving {
    /// Its number on the connection.
    pub(crate) number: u64,
    /// When the server read it.
    pub(crate) at: Duration,
    pub(crate) request: Request,
    pub(crate) fate: Fate,
    /// True if the session was over for the server when it read the request.
    pub(crate) is_expired: bool,
}

impl Arriving {
    pub(crate) fn kind(&self) -> RequestKind {
        RequestKind::of(self.request.body.opcode())
    }

    /// True if the server that gets the request answers it without the leader.
    pub(crate) fn is_settled_here(&self) -> bool {
        self.fate.throttled || !self.kind().goes_through_the_leader()
    }
}

/// From a server to a client, on one connection, in order.
#[derive(Debug)]
pub(crate) enum Downward {
    /// The bytes of a frame, or those before a cut.
    Bytes(Vec<u8>, Note),
    /// The server has closed the connection.
    Close,
}

/// What the trace and the figures note of a frame.
#[derive(Debug)]
#[cfg_attr(not(feature = "embedded"), allow(dead_code))]
pub(crate) enum Note {
    Connected {
        session: i64,
        timeout: Duration,
    },
    /// There is no such session any more.
    Expired,
    Reply {
        /// How long the server took to answer.
        took: Duration,
        /// The request and the reply in words, for the trace.
        text: Option<String>,
    },
    Event(EventType, String),
    /// The connection breaks after so many bytes of a reply of so many.
    Cut(usize, usize),
}
