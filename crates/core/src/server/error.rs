//! The error of one request: refused, session over, or outcome unknown.

use std::sync::Arc;

use zookeeper_recipes_connection::RequestError;
pub use zookeeper_recipes_connection::SessionEnd;
use zookeeper_recipes_protocol::{ErrorCode, Permission};

use crate::invalid_input::InvalidInput;

/// The error of one request to a server.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServerError {
    /// The server refused the request. Nothing was changed.
    #[error("{0}")]
    Refused(Refusal),
    /// The session is over. The server accepts no further request of it.
    #[error("the session is over: {0}")]
    SessionOver(SessionEnd),
    /// No answer came. The server may or may not have applied the request.
    #[error("no answer came, so the outcome is unknown: {0}")]
    OutcomeUnknown(Arc<dyn std::error::Error + Send + Sync>),
}

impl ServerError {
    /// An unknown outcome with this cause.
    pub fn outcome_unknown(
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ServerError {
        ServerError::OutcomeUnknown(Arc::from(cause.into()))
    }

    /// True if the server refused the request for this reason.
    pub fn is(&self, refusal: Refusal) -> bool {
        matches!(self, ServerError::Refused(found) if *found == refusal)
    }

    /// True if the server may or may not have applied the request.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, ServerError::OutcomeUnknown(_))
    }

    /// True if the same request may succeed a moment later, with nothing else changed.
    pub(crate) fn may_pass(&self) -> bool {
        self.is_unknown() || self.is(Refusal::Throttled)
    }
}

/// The error of a request without a reply.
impl From<RequestError> for ServerError {
    fn from(error: RequestError) -> ServerError {
        ServerError::Refused(match error {
            RequestError::Ended(end) => return ServerError::SessionOver(end),
            RequestError::RequestTooLong { length, limit } => {
                Refusal::TooLong(too_long(length, limit))
            }
            RequestError::TooLong { length, limit } => Refusal::ReplyTooLong { length, limit },
            RequestError::Unreadable(cause) => Refusal::UnreadableReply(cause.to_string()),
            RequestError::Refused(code) => return code.into(),
            RequestError::Unsupported(_) => Refusal::Unimplemented,
            other => return ServerError::outcome_unknown(other),
        })
    }
}

/// The error of a request that the server answered with an error code.
impl From<ErrorCode> for ServerError {
    fn from(code: ErrorCode) -> ServerError {
        ServerError::Refused(match code {
            ErrorCode::NoNode => Refusal::NoNode,
            ErrorCode::NodeExists => Refusal::NodeExists,
            ErrorCode::BadVersion => Refusal::BadVersion,
            ErrorCode::NotEmpty => Refusal::NotEmpty,
            ErrorCode::NoAuth => Refusal::NoAuth,
            ErrorCode::InvalidAcl => Refusal::InvalidAcl,
            ErrorCode::BadArguments => Refusal::BadArguments(code.to_string()),
            ErrorCode::NoChildrenForEphemerals => Refusal::NoChildrenForEphemerals,
            ErrorCode::QuotaExceeded => Refusal::QuotaExceeded,
            ErrorCode::ThrottledOp => Refusal::Throttled,
            ErrorCode::Unimplemented => Refusal::Unimplemented,
            ErrorCode::NotReadOnly => Refusal::ReadOnly,
            ErrorCode::EphemeralOnLocalSession => Refusal::LocalSession,
            ErrorCode::NoWatcher => Refusal::Other(code.to_string()),
            ErrorCode::SessionExpired => return ServerError::SessionOver(SessionEnd::Expired),
            ErrorCode::AuthFailed | ErrorCode::SessionClosedRequireSaslAuth => {
                return ServerError::SessionOver(SessionEnd::AuthenticationFailed);
            }
            unknown => return ServerError::outcome_unknown(unknown.to_string()),
        })
    }
}

/// The problem of a request that is longer than the servers accept.
pub(crate) fn too_long(length: usize, limit: usize) -> InvalidInput {
    let problem =
        format!("is longer than the {limit} bytes that the servers accept (jute.maxbuffer)");
    InvalidInput::new("request", format!("of {length} bytes"), problem)
}

/// `None` if the server says that there is no such znode.
pub(crate) fn if_there<T>(answer: Result<T, ServerError>) -> Result<Option<T>, ServerError> {
    match answer {
        Err(error) if error.is(Refusal::NoNode) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Why a server refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The znode or its parent does not exist.
    #[error("no such znode")]
    NoNode,
    /// The znode exists already.
    #[error("the znode exists already")]
    NodeExists,
    /// The data has another version.
    #[error("the znode's data has another version")]
    BadVersion,
    /// The znode has children.
    #[error("the znode has children")]
    NotEmpty,
    /// The access control list forbids the request. See also [`NoPermission`](Self::NoPermission).
    #[error("no permission: the znode's access control list forbids it")]
    NoAuth,
    /// The access control list of the znode does not grant this permission to the session.
    ///
    /// A request that creates or deletes a znode needs a permission of its parent.
    /// [`Error::Refused`](crate::Error::Refused) names the parent then.
    #[error("no permission: the znode's access control list does not grant `{0}` to this session")]
    NoPermission(Permission),
    /// The access control list names the credentials of a session that has none. Nothing was sent.
    #[error(
        "the access control list names the creator by the scheme `auth`, and the session has no \
         credentials: set `ConnectOptions::auth`"
    )]
    NoCredentials,
    /// The access control list of the request is empty or not valid.
    #[error("the access control list is empty or not valid here")]
    InvalidAcl,
    /// An argument of the request is not valid.
    #[error("bad arguments: {0}")]
    BadArguments(String),
    /// The request is longer than the servers accept. It was not sent.
    #[error("{0}")]
    TooLong(InvalidInput),
    /// The reply to a read is longer than this client reads. The session continues.
    #[error(
        "the reply has {length} bytes, and this client reads at most {limit}: too many children"
    )]
    ReplyTooLong {
        /// The length of the reply in bytes.
        length: usize,
        /// The most bytes that this client reads.
        limit: usize,
    },
    /// The reply to a request that only reads cannot be decoded.
    #[error("the server sent a reply that cannot be read: {0}")]
    UnreadableReply(String),
    /// The session is local to one server, so it cannot own a contender's ephemeral znode.
    #[error(
        "the session is local, so it cannot create an ephemeral znode: set \
         localSessionsUpgradingEnabled=true or localSessionsEnabled=false at the servers"
    )]
    LocalSession,
    /// The parent is an ephemeral znode, which cannot have children.
    #[error("the parent is an ephemeral znode, which cannot have children")]
    NoChildrenForEphemerals,
    /// The paths of the session's ephemeral znodes would be too long together. Nothing was sent.
    ///
    /// The transaction that ends a session lists them. An ensemble stops for good at one that its
    /// members cannot read. See
    /// [`Session::ephemeral_bytes_left`](crate::Session::ephemeral_bytes_left).
    #[error(
        "the paths of the session's ephemeral znodes would have {bytes} bytes, and the servers \
         can end a session with {limit}: open another session, or set \
         `ConnectOptions::jute_maxbuffer` if that of the servers is larger"
    )]
    TooManyEphemerals {
        /// The bytes of the paths, with the new znode's.
        bytes: usize,
        /// The most bytes that the session may have.
        limit: usize,
    },
    /// A quota is exceeded.
    #[error("a quota is exceeded")]
    QuotaExceeded,
    /// The server is overloaded.
    #[error("the server is overloaded and refused the request")]
    Throttled,
    /// The server does not know this kind of request, or closes the connection at each of them.
    #[error("the server does not know this kind of request")]
    Unimplemented,
    /// The server is cut off from its quorum, and answers only reads.
    #[error("the server is read-only: it is cut off from its quorum")]
    ReadOnly,
    /// The server refused the request for another reason.
    #[error("the server refused: {0}")]
    Other(String),
}
