//! One ZooKeeper session, which sends the requests of the protocol as they are.

use std::fmt;

use futures_util::future::{BoxFuture, Either, FutureExt, Map};
use zookeeper_recipes_connection::{
    self as connection, Answer, Connection, RequestError, TreeEvents, WatchEvent,
};
use zookeeper_recipes_protocol::RequestBody;

/// One ZooKeeper session, which sends the requests of the protocol as they are.
///
/// Dropping the last reference closes the session.
pub trait RawSession: fmt::Debug + Send + Sync {
    /// Sends a request when it is called, with its path at the server.
    ///
    /// A read with `watch` sets a watch: the answer has it, unless no watch was set.
    fn send(&self, request: RequestBody) -> RawReply;

    /// Watches the znode at this path at the server, and all znodes below it.
    ///
    /// The request is sent when this is called. `None` if there are no such watches, as by default.
    fn watch_tree(&self, _path: &str) -> Option<TreeEvents> {
        None
    }

    /// True if the events of one connection come in the order of their transactions.
    ///
    /// False for a session that reads some znodes from time to time, because it cannot watch them.
    /// Each waiter of such a session lists its queue before it holds.
    fn orders_events(&self) -> bool {
        true
    }

    /// Leaves the present server for another one, because a lease cannot be kept there.
    ///
    /// By default this does nothing, for a client that cannot choose.
    fn leave_server(&self) {}

    /// Closes the session, after the requests that were sent before. Later requests are not sent.
    ///
    /// A session that is over stays as it is. A session whose user closes it stays open at the
    /// server: see [`ServerSession::left_open`](crate::ensemble::ServerSession::left_open).
    fn close(&self);
}

impl RawSession for Connection {
    fn send(&self, request: RequestBody) -> RawReply {
        Either::Left(self.request(request).map(|answered| {
            let (answer, watch) = answered?;
            Ok((answer, watch.map(|watch| Box::into_pin(watch) as Watch)))
        }))
    }

    fn watch_tree(&self, path: &str) -> Option<TreeEvents> {
        Some(Connection::watch_tree(self, path))
    }

    fn leave_server(&self) {
        Connection::leave_server(self);
    }

    fn close(&self) {
        self.begin_close();
    }
}

/// An answer, and the watch that the request has set.
pub type RawAnswer = Result<(Answer, Option<Watch>), RequestError>;

/// The answer to a request that has already been sent: of the library's own connection, or boxed.
pub type RawReply =
    Either<Map<connection::PendingAnswer, OfConnection>, BoxFuture<'static, RawAnswer>>;

/// The answer of the library's own connection, with its watch as any other.
type OfConnection = fn(<connection::PendingAnswer as Future>::Output) -> RawAnswer;

/// The answer of this future.
pub fn boxed_reply(answer: impl Future<Output = RawAnswer> + Send + 'static) -> RawReply {
    Either::Right(answer.boxed())
}

/// The id of a ZooKeeper session. It prints as in ZooKeeper's own tools.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub i64);

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A watch on the server. It resolves once, with its event.
///
/// [`WatchEvent::Unwatched`] means that the watch has seen no event: the session is over, or the znode
/// must be read again. So it is
/// [after a reconnect](crate::ensemble::ServerSession#after-a-reconnect), and some servers close the
/// connection if a client sets its watches again.
///
/// # Cancel safety
///
/// If the watch is dropped before it resolves, the client removes it from the server. That is one
/// request, and the drop does not wait for the answer.
pub type Watch = BoxFuture<'static, WatchEvent>;
