//! What an attempt of a recipe came to when it did not come to a hold.
//!
//! [`ServerError`] is the outcome of one request. [`Error`] is the outcome of an attempt: it names
//! the path, the session and the cause.

use std::sync::Arc;
use std::time::Duration;

use crate::hold_state::LossReason;
use crate::invalid_input::InvalidInput;
use crate::server::ensemble::SessionId;
use crate::server::error::{Refusal, ServerError, SessionEnd};

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
        reason: LossReason,
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
