//! What can go wrong, as values.
//!
//! Two levels. [`ServerError`] is what one request came to, classified once, at the seam: a
//! definite no, a session that is over, or an outcome nobody knows. [`Error`] is what an attempt
//! of a recipe came to: it says at which path, in which session, and because of what.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::ensemble::{SessionEnd, SessionId};

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

/// What an attempt of a recipe came to, when it did not come to a hold.
///
/// Three [kinds](Self::kind) want three answers: *this attempt failed* ([`InvalidInput`](Self::InvalidInput),
/// [`Refused`](Self::Refused), [`OtherRecipe`](Self::OtherRecipe),
/// [`DeadlineElapsed`](Self::DeadlineElapsed), [`ContenderDeleted`](Self::ContenderDeleted)), the session lives and one may try again; *the
/// session is over* ([`SessionOver`](Self::SessionOver), [`Connect`](Self::Connect)), all that
/// was held in it is lost; *the outcome is unknown* ([`OutcomeUnknown`](Self::OutcomeUnknown)).
/// Whatever the error, nothing is left in the queue: where the server could not be told at once,
/// the session goes on telling it in the background.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for makes no sense; nothing was sent.
    #[error(transparent)]
    InvalidInput(#[from] InvalidInput),

    /// No session could be opened: not within the connection timeout, or not at all.
    #[error("no ZooKeeper session with {address} after {tried_for:.1?}: {cause}")]
    Connect {
        /// The hosts that were tried.
        address: String,
        /// How long they were tried.
        tried_for: Duration,
        /// What keeps this process from them, with the hosts that it was seen at.
        #[source]
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },

    /// The connect string names a chroot that is not there.
    ///
    /// It is not created on the way: a mistyped one would pass for an empty ensemble.
    #[error("the chroot {chroot} does not exist: create it, or correct the connect string")]
    MissingChroot {
        /// The chroot, as the connect string has it.
        chroot: String,
    },

    /// The server refused; nothing was changed.
    #[error("{path}: {refusal} (session {session})")]
    Refused {
        /// The znode in question.
        path: String,
        /// The session that asked.
        session: SessionId,
        /// What the server said.
        refusal: Refusal,
    },

    /// Another recipe queues at the same path: each would grant as if the other were not there.
    #[error("{path}: {child} contends for {recipe} there: one path, one recipe")]
    OtherRecipe {
        /// The recipe's path.
        path: String,
        /// The contender of the other recipe.
        child: String,
        /// The other recipe.
        recipe: &'static str,
    },

    /// The deadline passed before the recipe could be held.
    #[error("{path}: not acquired within {timeout:?}")]
    DeadlineElapsed {
        /// The recipe's path.
        path: String,
        /// How long the attempt was given.
        timeout: Duration,
    },

    /// The contender's own znode was deleted by somebody else while it waited.
    ///
    /// Its place in the queue is gone. Acquiring anew means the end of the queue, and is for the
    /// caller to decide.
    #[error(
        "{path}: deleted by somebody else, so the place in the queue is lost (session {session})"
    )]
    ContenderDeleted {
        /// The contender's znode.
        path: String,
        /// The session that it belonged to.
        session: SessionId,
    },

    /// The session is over, and with it everything that was held or waited for in it.
    #[error("{path}: session {session} is over: {reason}")]
    SessionOver {
        /// The znode in question.
        path: String,
        /// The session that is over.
        session: SessionId,
        /// Why.
        reason: SessionEnd,
    },

    /// The [`Session`](crate::Session) has ended for good; nothing was sent.
    #[error("{path}: there is no session any more: {reason}")]
    NoSession {
        /// The recipe's path.
        path: String,
        /// Why there will be none.
        reason: SessionEnd,
    },

    /// The hold on which something depended had been lost before.
    #[error("{path}: {reason} (session {session})")]
    Lost {
        /// The hold's znode.
        path: String,
        /// The session that it belonged to.
        session: SessionId,
        /// How it was lost.
        reason: crate::hold::LossReason,
    },

    /// No answer came: what was asked for may or may not have happened.
    #[error("{path}: no answer came, so the outcome is unknown: {cause} (session {session})")]
    OutcomeUnknown {
        /// The znode in question.
        path: String,
        /// The session that asked.
        session: SessionId,
        /// What broke.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
}

/// The three kinds of [`Error`], which want three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// This attempt failed. The session lives, unless there never was one.
    AttemptFailed,
    /// The session is over, or was never opened. All that was held in it is lost.
    SessionOver,
    /// No answer came: what was asked for may or may not have happened.
    OutcomeUnknown,
}

impl Error {
    /// Which of the three kinds it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::SessionOver { .. } | Error::NoSession { .. } | Error::Connect { .. } => {
                ErrorKind::SessionOver
            }
            Error::OutcomeUnknown { .. } => ErrorKind::OutcomeUnknown,
            _ => ErrorKind::AttemptFailed,
        }
    }

    /// Whether the same call, made again later, may succeed without anybody's help.
    ///
    /// No permission, a bad path, a closed session, or another recipe at the path are for somebody
    /// to mend.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Connect { .. }
            | Error::ContenderDeleted { .. }
            | Error::DeadlineElapsed { .. }
            | Error::Lost { .. }
            | Error::OutcomeUnknown { .. } => true,
            Error::SessionOver { reason, .. } => *reason == SessionEnd::Expired,
            Error::Refused { refusal, .. } => {
                matches!(refusal, Refusal::Throttled | Refusal::ReadOnly)
            }
            Error::InvalidInput(_)
            | Error::MissingChroot { .. }
            | Error::NoSession { .. }
            | Error::OtherRecipe { .. } => false,
        }
    }

    /// Whether a deadline of the caller's has passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::DeadlineElapsed { .. })
    }

    /// Puts a request's failure into its place.
    pub fn at(path: impl Into<String>, session: SessionId, error: ServerError) -> Error {
        let path = path.into();
        match error {
            ServerError::Refused(refusal) => Error::Refused {
                path,
                session,
                refusal,
            },
            ServerError::SessionOver(reason) => Error::SessionOver {
                path,
                session,
                reason,
            },
            ServerError::OutcomeUnknown(cause) => Error::OutcomeUnknown {
                path,
                session,
                cause,
            },
        }
    }
}

/// A value that was refused before anything was sent, with what was wrong about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject} {value:?} {problem}")]
pub struct InvalidInput {
    subject: &'static str,
    value: String,
    problem: String,
}

impl InvalidInput {
    /// Says that `value`, given as `subject`, has this `problem`: "path \"a\" is not absolute".
    pub fn new(
        subject: &'static str,
        value: impl Into<String>,
        problem: impl Into<String>,
    ) -> InvalidInput {
        InvalidInput {
            subject,
            value: value.into(),
            problem: problem.into(),
        }
    }

    /// The value that was refused.
    pub fn value(&self) -> &str {
        &self.value
    }
}
