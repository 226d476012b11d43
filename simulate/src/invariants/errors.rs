//! An attempt fails only for a reason.

use zookeeper_recipes_core::{Error, SessionEnd};

use crate::ledger::{Findings, State};

/// Whether there was the reason that the error tells of.
pub(crate) fn at_failure(state: &State, who: &str, error: &Error) -> Findings {
    let justified = match error {
        Error::ContenderDeleted { path, session } => {
            state.deleted_by_hand.contains(path) || state.ended.contains_key(session)
        }
        // A client that was cut off for too long knows better than the server.
        Error::SessionOver { reason, .. } => {
            matches!(reason, SessionEnd::Expired | SessionEnd::Closed)
        }
        Error::DeadlineElapsed { .. } | Error::Lost { .. } | Error::NoSession { .. } => true,
        Error::Connect { .. } => true,
        _ => false,
    };
    match justified {
        true => Findings::new(),
        false => vec![(
            "an attempt fails only for a reason",
            format!("{who}: {error:?}"),
        )],
    }
}
