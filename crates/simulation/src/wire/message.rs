//! The messages on a connection, both ways.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::{AuthId, Event};

use super::answer::{Answer, Failure};
use super::request::Request;

/// What a client reports about itself on a new connection.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    /// The session that the client resumes. `None` if it asks for a new one.
    pub(crate) session: Option<i64>,
    /// The last transaction that the client has seen.
    pub(crate) seen: i64,
    /// What the client authenticates as.
    pub(crate) identities: Vec<AuthId>,
    /// The session timeout that the client asks for.
    pub(crate) timeout: Duration,
    /// True if the client accepts a server that only answers reads.
    pub(crate) read_only: bool,
    /// The password of the session that the client resumes.
    pub(crate) password: Vec<u8>,
}

/// From a client to a server, on one connection, in order.
#[derive(Debug)]
pub(crate) enum Upward {
    /// The first message.
    Connect(Greeting),
    Request(Arriving),
    /// The client has closed the connection.
    Close,
}

/// A request as a server gets it, with what is to happen to its reply.
#[derive(Debug)]
pub(crate) struct Arriving {
    pub(crate) id: u64,
    pub(crate) request: Request,
    pub(crate) lose_reply: bool,
    pub(crate) hide_outcome: bool,
    pub(crate) delay_reply: Duration,
    pub(crate) expire: bool,
    pub(crate) throttled: bool,
    /// The server is cut off from the others for this long, once it has answered.
    pub(crate) cut_off: Option<Duration>,
}

impl Arriving {
    /// A request that nothing befalls.
    pub(crate) fn new(id: u64, request: Request) -> Arriving {
        Arriving {
            id,
            request,
            lose_reply: false,
            hide_outcome: false,
            delay_reply: Duration::ZERO,
            expire: false,
            throttled: false,
            cut_off: None,
        }
    }

    /// True if the server that gets the request answers it without the leader.
    pub(crate) fn is_settled_here(&self) -> bool {
        self.throttled || !self.request.kind().goes_through_the_leader()
    }
}

/// From a server to a client, on one connection, in order.
#[derive(Debug)]
pub(crate) enum Downward {
    Connected {
        session: i64,
        timeout: Duration,
        /// True if the server only answers reads.
        read_only: bool,
    },
    /// There is no such session any more.
    Expired,
    Reply {
        id: u64,
        zxid: i64,
        result: Result<Answer, Failure>,
        /// The request and the reply in words, for the trace.
        text: Option<String>,
    },
    Event {
        path: String,
        event: Event,
    },
    /// The first bytes of a message, so many 256ths. The connection breaks before the next ones.
    Torn {
        message: Box<Downward>,
        share: u8,
    },
    /// The server has closed the connection.
    Close,
}
