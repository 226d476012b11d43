//! The error of a failed attempt. [`ServerError`] is that of one request.

use std::sync::Arc;
use std::time::Duration;

use crate::hold_state::LossReason;
use crate::invalid_input::InvalidInput;
use crate::server::ensemble::{Operation, Permission, SessionId, TransactionError};
use crate::server::error::{Refusal, ServerError, SessionEnd};

/// The error of an operation of a recipe, such as a failed attempt to acquire.
///
/// There are four [kinds](ErrorKind) of errors. [`is_retryable`](Self::is_retryable) says if the
/// same call may succeed later.
///
/// A failed attempt leaves no contender in the queue. If the contender's znode cannot be deleted
/// at once, the session deletes it in the background.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is not valid, or the recipe's options do not fit what the ensemble has recorded.
    ///
    /// An argument is refused before anything is sent. A contender that finds other options in the
    /// queue has sent its create: the session deletes its znode.
    #[error(transparent)]
    InvalidInput(#[from] InvalidInput),

    /// No session was opened within the connection timeout, or none can be opened.
    #[error("no ZooKeeper session with {address} after {tried_for:.1?}: {cause}")]
    Connect {
        /// The hosts that were tried.
        address: String,
        /// How long the hosts were tried.
        tried_for: Duration,
        /// Why each host cannot be reached, if this is known.
        ///
        /// It is in the text of this error, so it is not its source. If a server has ended the
        /// session, it or its source is a [`ServerError::SessionOver`].
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },

    /// The chroot of the connect string does not exist.
    ///
    /// A session does not create its chroot: a mistyped chroot would look like an empty ensemble.
    #[error("the chroot {chroot} does not exist: create it, or correct the connect string")]
    MissingChroot {
        /// The chroot of the connect string.
        chroot: String,
    },

    /// The server refused the request. Nothing was changed.
    #[error("{path}: {refusal} (session {session})")]
    Refused {
        /// The path of the znode.
        ///
        /// For [`Refusal::NoPermission`] the znode that does not grant it, which is the parent of a
        /// znode to create or to delete.
        path: String,
        /// The session that sent the request.
        session: SessionId,
        /// The server's reason.
        refusal: Refusal,
    },

    /// Another recipe uses the same path. The two recipes would not exclude each other.
    #[error("{path}: {child} is a contender of {recipe}: use another path for each recipe")]
    OtherRecipe {
        /// The recipe's path.
        path: String,
        /// The name of the other recipe's contender.
        child: String,
        /// The other recipe.
        recipe: &'static str,
    },

    /// The deadline passed before the recipe was acquired.
    #[error("{path}: not acquired within {timeout:?}")]
    DeadlineElapsed {
        /// The recipe's path.
        path: String,
        /// The time limit of the attempt.
        timeout: Duration,
    },

    /// Another client deleted the contender's znode while the contender waited.
    ///
    /// The place in the queue is lost. A new attempt begins at the end of the queue, so this error
    /// does not lead to an automatic retry.
    #[error(
        "{path}: another client deleted this znode, so the place in the queue is lost \
         (session {session})"
    )]
    ContenderDeleted {
        /// The path of the contender's znode.
        path: String,
        /// The session of the contender.
        session: SessionId,
    },

    /// Another client wrote to the contender's znode while the contender waited.
    ///
    /// The contender behind takes such a write for a release, so the place in the queue is lost, as
    /// with [`ContenderDeleted`](Self::ContenderDeleted).
    #[error(
        "{path}: another client wrote to this znode, so the place in the queue is lost \
         (session {session})"
    )]
    ContenderWritten {
        /// The path of the contender's znode.
        path: String,
        /// The session of the contender.
        session: SessionId,
    },

    /// The contender's turn has come, and the servers answer too late for a hold.
    ///
    /// The session has tried five servers for
    /// [a lease](crate::docs::lease#if-the-servers-answer-late), each for the session timeout. The
    /// contender does not bar the others any longer. A longer session timeout helps, and so does
    /// [`ConnectOptions::tick`](crate::ConnectOptions::tick).
    #[error(
        "{path}: no lease in {waited:.1?}, because the servers answer after {answer:.1?}, which is \
         too late for the session timeout (session {session})"
    )]
    NoLease {
        /// The recipe's path.
        path: String,
        /// The session of the contender.
        session: SessionId,
        /// How long the contender has waited for a lease.
        waited: Duration,
        /// How long the last answer took.
        answer: Duration,
    },

    /// The session is over. All its holds are lost, and all its attempts fail.
    #[error("{path}: session {session} is over: {reason}")]
    SessionOver {
        /// The path of the znode.
        path: String,
        /// The session that is over.
        session: SessionId,
        /// Why the session is over.
        reason: SessionEnd,
    },

    /// The [`Session`](crate::Session) is over for good. Nothing of the call remains.
    #[error("{path}: no session is open, and none will be opened: {reason}")]
    NoSession {
        /// The recipe's path.
        path: String,
        /// Why no session will be opened.
        reason: SessionEnd,
    },

    /// No server has answered a `try_acquire` in time.
    ///
    /// If the contender's znode was created, the session deletes it.
    #[error("{path}: no server answers")]
    Disconnected {
        /// The recipe's path.
        path: String,
    },

    /// The operation needs a hold, and the hold was lost before.
    #[error("{path}: {reason} (session {session})")]
    Lost {
        /// The path of the hold's znode.
        path: String,
        /// The session of the hold.
        session: SessionId,
        /// Why the hold was lost.
        reason: LossReason,
    },

    /// The operation needs a hold, and the owner released the hold before.
    #[error("{path}: the hold was already released (session {session})")]
    Released {
        /// The path of the hold's znode.
        path: String,
        /// The session of the hold.
        session: SessionId,
    },

    /// No answer came. The server may or may not have applied the request.
    #[error("{path}: no answer came, so the outcome is unknown: {cause} (session {session})")]
    OutcomeUnknown {
        /// The path of the znode.
        path: String,
        /// The session that sent the request.
        session: SessionId,
        /// Why no answer came.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
}

/// The four kinds of [`Error`]. A caller handles each kind in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The call failed. The session is alive, unless no session was ever opened.
    AttemptFailed,
    /// The hold of the call is lost, for another reason than the end of its session, or was
    /// released.
    ///
    /// The same call never succeeds later. Acquire again: the session may be alive.
    HoldEnded,
    /// The session is over, or was never opened. All its holds are lost.
    SessionOver,
    /// No answer came. The server may or may not have applied the request.
    OutcomeUnknown,
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::SessionOver { .. }
            | Error::NoSession { .. }
            | Error::Connect { .. }
            | Error::Lost {
                reason: LossReason::Session(_),
                ..
            } => ErrorKind::SessionOver,
            Error::Lost { .. } | Error::Released { .. } => ErrorKind::HoldEnded,
            Error::OutcomeUnknown { .. } => ErrorKind::OutcomeUnknown,
            _ => ErrorKind::AttemptFailed,
        }
    }

    /// True if the same call may succeed later without any other change.
    ///
    /// False if a person has to change something first: the server denies permission, the path is
    /// not valid, the session is closed, or another recipe uses the path. Always false for
    /// [`ErrorKind::HoldEnded`].
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Connect { .. }
            | Error::ContenderDeleted { .. }
            | Error::ContenderWritten { .. }
            | Error::DeadlineElapsed { .. }
            | Error::Disconnected { .. }
            | Error::NoLease { .. }
            | Error::OutcomeUnknown { .. } => true,
            Error::SessionOver { reason, .. } => reason.is_followed(),
            Error::Refused { refusal, .. } => {
                matches!(refusal, Refusal::Throttled | Refusal::ReadOnly)
            }
            _ => false,
        }
    }

    /// True if the caller's deadline has passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::DeadlineElapsed { .. })
    }

    /// The error of an operation by the hold with this znode and this session.
    pub(crate) fn lost(path: &str, session: SessionId, reason: LossReason) -> Error {
        let path = path.to_owned();
        Error::Lost {
            path,
            session,
            reason,
        }
    }

    /// The error of an attempt that could not create the znode at this path in this session.
    ///
    /// As [`at`](Self::at), but if the permission is missing, the error names it, and the parent,
    /// which does not grant it.
    pub fn at_create(path: &str, session: SessionId, error: ServerError) -> Error {
        Error::at_needing(Permission::CREATE, path, session, error)
    }

    /// As [`at`](Self::at), for a read of the znode at this path.
    pub(crate) fn at_read(path: &str, session: SessionId, error: ServerError) -> Error {
        Error::at_needing(Permission::READ, path, session, error)
    }

    /// As [`at_create`](Self::at_create), for the deletion of the znode at this path.
    pub fn at_delete(path: &str, session: SessionId, error: ServerError) -> Error {
        Error::at_needing(Permission::DELETE, path, session, error)
    }

    /// The error of an attempt whose transaction of these operations failed in this session.
    ///
    /// The error names the path of the operation that the server refused, and `path` if it refused
    /// none. If the permission is missing, the error names the znode that does not grant it, and
    /// the permission.
    pub fn at_transaction(
        path: &str,
        session: SessionId,
        TransactionError { operation, error }: TransactionError,
        operations: &[Operation],
    ) -> Error {
        let Some(refused) = operation.and_then(|index| operations.get(index)) else {
            return Error::at(path, session, error);
        };
        let permission = match refused {
            Operation::Delete(_) => Permission::DELETE,
            Operation::SetData(_) => Permission::WRITE,
            Operation::Check(_) => Permission::READ,
            _ => Permission::CREATE,
        };
        Error::at_needing(permission, refused.path(), session, error)
    }

    /// As [`at`](Self::at), of a request that needs this permission.
    fn at_needing(
        permission: Permission,
        path: &str,
        session: SessionId,
        error: ServerError,
    ) -> Error {
        if !error.is(Refusal::NoAuth) {
            return Error::at(path, session, error);
        }
        let of_parent = [Permission::CREATE, Permission::DELETE].contains(&permission);
        let granting = if of_parent { parent_of(path) } else { path };
        let refusal = Refusal::NoPermission(permission);
        Error::at(granting, session, ServerError::Refused(refusal))
    }

    /// The error of an attempt whose request failed at this path in this session.
    pub fn at(path: impl Into<String>, session: SessionId, error: ServerError) -> Error {
        let path = path.into();
        match error {
            ServerError::Refused(Refusal::TooLong(problem)) => Error::InvalidInput(problem),
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

/// The path of the parent of the znode at this path, which may end with a slash.
fn parent_of(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => parent,
        _ => "/",
    }
}
