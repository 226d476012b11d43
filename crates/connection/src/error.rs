//! Why a connection broke, why a session ended, and why a request has no reply.
//!
//! The text of an error has that of its cause. So the cause is not its source.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_protocol::{DecodeError, ErrorCode, FrameError, OpCode};

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The server has expired the session, or has answered with another one, or may have expired it.
    #[error("expired")]
    Expired,
    /// The servers refuse the session, and open new ones: they have lost their data, or have an older
    /// backup.
    ///
    /// At least twice the session timeout has passed without a confirmed connection, so each hold was
    /// lost before. Ephemeral znodes that the servers still have last until they expire the session.
    #[error("refused by the servers, which open new sessions: they may have lost their data")]
    Refused,
    /// The servers refused the credentials.
    #[error("refused by the server: authentication failed")]
    AuthenticationFailed,
    /// The servers accept no request without SASL, or another scheme that they enforce.
    ///
    /// Give the session credentials of the scheme `sasl`. No further session is opened. A server
    /// confirms such a session, so the opening waits for the reply to a ping, too.
    #[error(
        "refused by the servers, which accept no request without SASL \
         (sessionRequireClientSASLAuth or enforce.auth.schemes)"
    )]
    SaslRequired,
    /// This process has closed the session, because a server has shortened its timeout.
    ///
    /// The server did so at a reconnect. The lease of the recipes counted with the longer timeout.
    #[error("closed, because a server has shortened its timeout")]
    TimeoutShortened,
    /// This process has closed the session, or the runtime of the session has shut down.
    #[error("closed")]
    Closed,
    /// An option does not fit the servers, so no session was ever opened. A warning says which.
    #[error("an option does not fit the servers")]
    InvalidOptions,
}

impl SessionEnd {
    /// True if the server does not know of the end yet.
    pub fn is_closed_here(self) -> bool {
        matches!(self, SessionEnd::Closed | SessionEnd::TimeoutShortened)
    }

    /// True if a new session follows, and nobody has to change anything for that.
    pub fn is_followed(self) -> bool {
        matches!(
            self,
            SessionEnd::Expired | SessionEnd::Refused | SessionEnd::TimeoutShortened
        )
    }
}

/// Why a connection broke, or was never opened.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// The look-up of the name has failed, or has found no address.
    #[error(transparent)]
    NoAddress(Arc<io::Error>),
    /// The look-up of the name has no result yet.
    #[error("the name was not looked up within {0:?}: do the name servers answer?")]
    NotLookedUp(Duration),
    /// The connection could not be encrypted, and nothing but the TLS handshake was sent. Or the
    /// server, or somebody on the way, broke the rules of TLS later.
    #[error("TLS: {0}")]
    Tls(Arc<io::Error>),
    /// The network reported an error.
    #[error(transparent)]
    Io(Arc<io::Error>),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The server closed the connection before it had sent anything, or the connection was reset
    /// then.
    #[error("the server closed the connection before it had sent anything")]
    ClosedUnheard,
    /// The server closed the connection while this request was the oldest without a reply.
    ///
    /// Servers that are not Apache's close the connection if they do not know a request.
    #[error("the server closed the connection at a request that it may not know: {0:?}")]
    ClosedAt(OpCode),
    /// The server confirmed the connection, but granted no session.
    #[error("the server granted no session")]
    NotGranted,
    /// The server has no quorum and only reads.
    #[error("the server only reads")]
    ReadOnly,
    /// The host did not accept a connection in time.
    #[error("no connection within {0:?}")]
    NotConnected(Duration),
    /// The server opened no session in time.
    #[error("the server opened no session within {0:?}")]
    NoSession(Duration),
    /// The server sent nothing for this long, although a request waited for its reply.
    #[error("the server sent nothing for {0:?}")]
    Silent(Duration),
    /// The server answered later requests or pings, but not this one.
    #[error("the server did not answer a request within {after:?}: {opcode:?}")]
    Unanswered {
        /// The kind of request.
        opcode: OpCode,
        /// The time since it was sent.
        after: Duration,
    },
    /// This process has left the server for another.
    #[error("this process has left the server")]
    Left,
    /// The server does not know this scheme, or does not accept its credentials.
    #[error("the server does not know the scheme {0:?}, or does not accept its credentials")]
    AuthenticationFailed(String),
    /// The server refused to set the session's watches again.
    #[error("the server refused to set the watches again: {0}")]
    WatchesRefused(ErrorCode),
    /// The length of a frame is negative or above the limit.
    #[error("the server sent {0}")]
    Frame(FrameError),
    /// A frame is no reply to the request that it answers.
    #[error("the server sent a reply that cannot be decoded: {0}")]
    Reply(DecodeError),
    /// A reply came to a request that is not the oldest without a reply.
    #[error("the server sent a reply to request {0}, which is not the oldest without a reply")]
    NotAsked(i32),
}

impl From<FrameError> for DisconnectReason {
    fn from(error: FrameError) -> DisconnectReason {
        DisconnectReason::Frame(error)
    }
}

impl From<DecodeError> for DisconnectReason {
    fn from(error: DecodeError) -> DisconnectReason {
        DisconnectReason::Reply(error)
    }
}

impl From<io::Error> for DisconnectReason {
    fn from(error: io::Error) -> DisconnectReason {
        DisconnectReason::Io(Arc::new(error))
    }
}

/// Why a request has no reply.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The session ended. The server may or may not have applied a request that was sent.
    #[error("the session is over: {0}")]
    Ended(SessionEnd),
    /// A request that only the session itself sends. It was not sent.
    #[error("only the session itself sends a request of this kind: {0:?}")]
    Reserved(OpCode),
    /// The server refused to watch a tree.
    #[error("the server refused to watch the tree: {0}")]
    Refused(ErrorCode),
    /// Connections broke at requests of this kind, so the servers may not know it. It was not sent.
    #[error("the servers close the connection at each request of this kind: {0:?}")]
    Unsupported(OpCode),
    /// The request is longer than the servers accept. It was not sent.
    #[error("the request has {length} bytes, and the servers accept at most {limit}")]
    RequestTooLong {
        /// An upper bound of the length of the request, as servers pass it on.
        length: usize,
        /// The limit of the session's requests.
        limit: usize,
    },
    /// The reply is longer than this client reads. The request only reads, so nothing was changed.
    #[error("the reply has {length} bytes, and this client reads at most {limit}")]
    TooLong {
        /// The length of the reply.
        length: usize,
        /// The limit of the session's replies.
        limit: usize,
    },
    /// The reply cannot be decoded. The request only reads, so nothing was changed.
    #[error("the server sent a reply that cannot be decoded: {0}")]
    Unreadable(DecodeError),
    /// The connection broke after the request was sent. The server may or may not have applied it.
    #[error("no reply came: {0}")]
    Broken(DisconnectReason),
}
