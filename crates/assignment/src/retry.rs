//! Requests that are repeated until their outcome is known.

use std::sync::Arc;

use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Backoff, Error, NodePath, Refusal, Session};

/// True if another attempt may succeed. If the session is closed, the next attempt fails for good.
pub(crate) fn may_pass(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::SessionOver { .. })
}

/// What the servers have refused, if that is the error.
pub(crate) fn refusal(error: &Error) -> Option<&Refusal> {
    match error {
        Error::Refused { refusal, .. } => Some(refusal),
        _ => None,
    }
}

/// Repeats an attempt until it returns a value, or fails for good. `None` asks for another attempt.
pub(crate) async fn repeat<T, F>(
    session: &Session,
    path: &NodePath,
    mut attempt: impl FnMut(Arc<ServerSession>) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<Option<T>, Error>>,
{
    let mut backoff = Backoff::default();
    loop {
        match attempt(session.server(path).await?).await {
            Ok(Some(value)) => return Ok(value),
            Err(error) if !may_pass(&error) => return Err(error),
            Ok(None) | Err(_) => backoff.wait().await,
        }
    }
}
