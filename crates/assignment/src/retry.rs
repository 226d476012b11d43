//! Which errors another try may not meet.

use zookeeper_recipes_core::Error;

/// True if another attempt may succeed. If the session is closed, the next attempt fails for good.
pub(crate) fn may_pass(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::SessionOver { .. })
}
