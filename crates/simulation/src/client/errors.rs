//! What the caller of the interface is told when a request was not answered.

use zookeeper_recipes_core::ensemble::{SessionEnd, TransactionError};
use zookeeper_recipes_core::{Refusal, ServerError};

/// The refusal of a request, for the caller of the interface.
pub(crate) fn refused(operation: Option<usize>, refusal: Refusal) -> TransactionError {
    TransactionError {
        operation,
        error: ServerError::Refused(refusal),
    }
}

/// The end of the session before an answer came, for the caller of the interface.
pub(crate) fn session_over(end: SessionEnd) -> TransactionError {
    TransactionError {
        operation: None,
        error: ServerError::SessionOver(end),
    }
}

/// A broken connection, for the caller of the interface.
pub(crate) fn outcome_unknown(cause: &str) -> TransactionError {
    TransactionError {
        operation: None,
        error: ServerError::outcome_unknown(cause),
    }
}
