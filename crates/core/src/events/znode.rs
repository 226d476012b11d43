//! The events of requests for single znodes.

use crate::events::TARGET;
use crate::server::error::{Refusal, ServerError};

/// The loss watch of a hold is not set, and is requested again.
pub(crate) fn loss_watch_refused(path: &str, refusal: &Refusal) {
    tracing::warn!(target: TARGET, path, %refusal, "the server refuses a loss watch");
}

pub(crate) fn deletion_refused(path: &str, refusal: &Refusal) {
    tracing::warn!(
        target: TARGET, path, %refusal, "the server refuses a deletion, which is repeated"
    );
}

pub(crate) fn not_deleted(error: &ServerError) {
    tracing::debug!(target: TARGET, %error, "a znode was not deleted when its session was closed");
}

pub(crate) fn create_unknown(path: &str, error: &ServerError) {
    tracing::debug!(target: TARGET, path, %error, "looking for the znode of an unknown create");
}
