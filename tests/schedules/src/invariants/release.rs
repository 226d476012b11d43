//! A released hold is gone, for its owner and for all views.

use zookeeper_recipes_core::{HoldState, HoldView};

use crate::findings::Findings;
use crate::state::State;

/// A release has come back with the server's word: the znode has gone.
pub(crate) fn at_word(state: &State, who: &str, path: &str) -> Findings {
    // It may be there again with older data of the servers.
    match state.standing.contains_key(path) && !state.ghosts.contains(path) {
        false => Findings::new(),
        true => {
            let text = format!("{who} has released {path}, which is still there");
            vec![("a release has deleted the znode", text)]
        }
    }
}

/// A hold was let go of: no view of it holds any more.
///
/// [`loss`](super::loss) checks, as the znode is deleted, that the views were notified before
/// anything was sent.
pub(crate) fn of_views(who: &str, view: &HoldView) -> Findings {
    match view.state() {
        HoldState::Released | HoldState::Lost(_) => Findings::new(),
        _ => {
            let text = format!("{who}: {view:?}");
            vec![("what was let go of is held by none", text)]
        }
    }
}
