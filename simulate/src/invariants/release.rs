//! What was released is gone, for all who had a part in it.

use zookeeper_recipes_core::{Hold, HoldState};

use crate::ledger::{Findings, State};

/// A release has come back with the server's word: the znode has gone.
pub(crate) fn at_word(state: &State, who: &str, path: &str) -> Findings {
    match state.standing.contains_key(path) {
        false => Findings::new(),
        true => {
            let text = format!("{who} has released {path}, which is still there");
            vec![("a release has deleted the znode", text)]
        }
    }
}

/// A release for all clones has come back: none of them holds any more.
///
/// That they were told before anything was sent shows as the znode is deleted: see
/// [`loss`](super::loss).
pub(crate) fn for_all(who: &str, clone: &Hold) -> Findings {
    match clone.state() {
        HoldState::Lost(_) => Findings::new(),
        _ => {
            let text = format!("{who}: {clone:?}");
            vec![("what is released for all is held by none", text)]
        }
    }
}
