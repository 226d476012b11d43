//! The proof that the leader of a quorum has accepted a reconnect.
//!
//! A server that has lost its leader accepts a reconnect, and its leader does not hear of it. An
//! isolated leader accepts one, too. Only the leader of a quorum commits a write. So a committed
//! write over the new connection proves that this leader has touched the session, and that it
//! refuses requests of the session that are still under way over an earlier connection.
//! [`docs::lease`](crate::docs::lease) has the argument.

use crate::server::ensemble::{Operation, ServerSession};
use crate::server::error::{Refusal, ServerError};

/// Commits a transaction that checks the root of the session's paths, and changes nothing.
///
/// The leader commits it also if the root does not exist, or if the session may not read it.
///
/// | | requests | round trips | watches |
/// |---|---|---|---|
/// | the transaction | 1 | 1 | 0 |
///
/// # Errors
///
/// The error of the transaction if it was not committed.
pub(crate) async fn commit_nothing(server: &dyn ServerSession) -> Result<(), ServerError> {
    let check = Operation::Check {
        path: "/".to_owned(),
        version: None,
    };
    match server
        .transact(&[check])
        .await
        .map_err(|refused| refused.error)
    {
        Ok(_) => Ok(()),
        Err(error) if error.is(Refusal::NoNode) || error.is(Refusal::NoAuth) => Ok(()),
        Err(error) => Err(error),
    }
}
