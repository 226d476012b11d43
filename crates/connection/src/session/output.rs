//! What the machine yields: states, answers and events, and what its driver has to do.

use std::net::SocketAddr;
use std::task::Waker;
use std::time::Duration;

use zookeeper_recipes_protocol::Reply;

use crate::error::{RequestError, SessionEnd};
use crate::session::host::Host;
use crate::session::watches::WatchEvent;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// A server has confirmed the session over the current connection.
    Connected {
        /// The id of the session.
        session_id: i64,
        /// The shortest session timeout that a server has granted so far.
        timeout: Duration,
        /// The number of the connection: higher than those of earlier connections.
        connection: u64,
    },
    /// No server has confirmed the session over the current connection.
    Disconnected {
        /// The shortest session timeout that a server has granted so far, also if the connection
        /// broke at once. Before the first grant, the session timeout to ask for.
        timeout: Duration,
    },
    /// The session is over.
    Ended(SessionEnd),
}

/// A reply, and what passed between this process and the server.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The reply. Its header may carry an error code.
    pub reply: Reply,
    /// When the request and the reply passed.
    pub exchange: Exchange,
}

/// When a request and its reply passed, and over which connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the request was handed to the connection. The server got it later.
    pub sent: Duration,
    /// When the reply was read.
    pub answered: Duration,
    /// The number of the connection that carried both.
    ///
    /// `None` if another connection may have carried one of them: a [`Connection`](crate::Connection)
    /// always knows.
    pub connection: Option<u64>,
}

impl Exchange {
    /// The time from the sending to the reply.
    pub fn took(self) -> Duration {
        self.answered.saturating_sub(self.sent)
    }
}

/// What the machine yields.
#[derive(Debug)]
pub enum Output<R, W> {
    /// Look the name of this host up, beside all else. The answer is
    /// [`looked_up`](crate::Machine::looked_up), whenever it comes.
    LookUp(Host),
    /// Open a connection. The answer is [`connected`](crate::Machine::connected) or
    /// [`broken`](crate::Machine::broken).
    Connect {
        /// The host, whose name a certificate has to be valid for.
        host: Host,
        /// The address of the host to connect to.
        address: SocketAddr,
        /// The time after which the machine gives the address up.
        within: Duration,
    },
    /// Drop the connection. Before it, send the rest of what [`transmit`](crate::Machine::transmit) gives.
    Disconnect,
    /// The request of this caller has its reply, or will have none.
    Answered(R, Result<Answer, RequestError>),
    /// This watch has ended.
    Watched(W, WatchEvent),
    /// A watch of a tree has an event, or has ended. [`poll_tree`](crate::Machine::poll_tree) has left
    /// this waker.
    Wake(Waker),
    /// The state of the session has changed, or an address was tried or looked up in vain.
    State(ConnectionState),
}
