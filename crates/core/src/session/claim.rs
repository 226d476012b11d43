//! The claim of a session that another process has left open.
//!
//! Two processes may resume one session, for example from two copies of a file. Each of them would
//! take the holds for its own. So the process that leaves the session creates a *ticket*, an
//! ephemeral znode, after its holds are lost. A process that resumes the session sets the data of
//! the ticket, on the condition that nobody has set it before. The servers commit one such write.

use std::sync::Arc;

use crate::retry::retry;
use crate::server::ensemble::{Operation, ServerSession};
use crate::server::error::{Refusal, ServerError, SessionEnd, if_there};

/// A session that may not be claimed yet. If it is dropped before, the session stays open.
struct Claim {
    server: Arc<dyn ServerSession>,
    is_done: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_done {
            self.server.detach();
        }
    }
}

/// Claims the session by the ticket at this path, with the claimant's name.
///
/// An earlier call with this name may have claimed the session. It has failed, and holds nothing.
///
/// # Errors
///
/// [`SessionEnd::Detached`] if another process has claimed the session.
pub(crate) async fn claim(
    server: Arc<dyn ServerSession>,
    ticket: &str,
    claimant: &str,
) -> Result<Arc<dyn ServerSession>, ServerError> {
    let mut claim = Claim {
        server: server.clone(),
        is_done: false,
    };
    let first_write = [Operation::SetData {
        path: ticket.to_owned(),
        data: claimant.as_bytes().to_vec(),
        version: Some(0),
    }];
    let claim_by_write = || async {
        match server.transact(&first_write).await {
            Ok(_) => Ok(true),
            // An earlier write without an answer may be this process's own.
            Err(refused) if refused.error.is(Refusal::BadVersion) => {
                let read = server.get(ticket).await;
                read.map(|(data, _)| data == claimant.as_bytes())
            }
            Err(refused) => Err(refused.error),
        }
    };
    // If there is no ticket, the process that has claimed the session has deleted it.
    match if_there(retry(ServerError::may_pass, claim_by_write).await)? {
        Some(true) => {
            claim.is_done = true;
            Ok(server)
        }
        Some(false) | None => Err(ServerError::SessionOver(SessionEnd::Detached)),
    }
}
