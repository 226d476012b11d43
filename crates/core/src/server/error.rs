//! The outcome of one request, classified once: a definite no, a session that is over, or unknown.

use std::fmt;
use std::sync::Arc;

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The server has expired it, or must be thought to have.
    Expired,
    /// The server refused the credentials.
    AuthenticationFailed,
    /// This process has closed it.
    Closed,
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            SessionEnd::Expired => "expired",
            SessionEnd::AuthenticationFailed => "refused by the server: authentication failed",
            SessionEnd::Closed => "closed",
        })
    }
}

/// What became of one request to a server.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServerError {
    /// The server refused; nothing was changed.
    #[error("{0}")]
    Refused(Refusal),
    /// The session is over; the server does nothing more for it.
    #[error("the session is over: {0}")]
    SessionOver(SessionEnd),
    /// No answer came: the request may or may not have been applied.
    #[error("no answer came, so the outcome is unknown: {0}")]
    OutcomeUnknown(Arc<dyn std::error::Error + Send + Sync>),
}

impl ServerError {
    /// An unknown outcome, for the reason given.
    pub fn outcome_unknown(
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ServerError {
        ServerError::OutcomeUnknown(Arc::from(cause.into()))
    }

    /// Whether the server refused for just this reason.
    pub fn is(&self, refusal: Refusal) -> bool {
        matches!(self, ServerError::Refused(found) if *found == refusal)
    }
}

/// A definite no: why a server refused a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The znode, or its parent, is not there.
    NoNode,
    /// The znode is there already.
    NodeExists,
    /// The data has another version.
    BadVersion,
    /// The znode has children.
    NotEmpty,
    /// The access control list forbids it.
    NoAuth,
    /// The access control list given is empty or not valid here.
    InvalidAcl,
    /// The request makes no sense to the server.
    BadArguments(String),
    /// The parent is ephemeral, and so can have no children.
    NoChildrenForEphemerals,
    /// A quota is used up.
    QuotaExceeded,
    /// The server has too much to do.
    Throttled,
    /// The server does not know this kind of request.
    Unimplemented,
    /// The server is cut off from its quorum and only reads.
    ReadOnly,
    /// The server refused for another reason, with this code.
    Other(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::NoNode => "no such znode",
            Refusal::NodeExists => "the znode exists already",
            Refusal::BadVersion => "the znode's data has another version",
            Refusal::NotEmpty => "the znode has children",
            Refusal::NoAuth => "no permission: the znode's access control list forbids it",
            Refusal::InvalidAcl => "the access control list is empty or not valid here",
            Refusal::BadArguments(what) => {
                return write!(formatter, "bad arguments: {what}");
            }
            Refusal::NoChildrenForEphemerals => {
                "the parent is an ephemeral znode, which can have no children"
            }
            Refusal::QuotaExceeded => "a quota is used up",
            Refusal::Throttled => "the server has too much to do and refused the request",
            Refusal::Unimplemented => "the server does not know this kind of request",
            Refusal::ReadOnly => "the server is read-only: it is cut off from its quorum",
            Refusal::Other(what) => return write!(formatter, "the server refused: {what}"),
        })
    }
}
