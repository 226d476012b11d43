//! What is held has a znode of its own session, by what the ensemble has committed.

use zookeeper_recipes_core::HoldView;

use crate::findings::Findings;
use crate::state::State;

/// A new holder has a znode of its own session.
///
/// Judged on the committed znodes, up to the moment of the grant. The contender may have judged on
/// older ones, but nobody gets in before another: those before it can only have become fewer.
pub(crate) fn at_grant(state: &State, who: &str, hold: &HoldView) -> Findings {
    if state.history.is_gone(hold) {
        return Findings::new();
    }
    let path = hold.node_path();
    let session = hold.session_id();
    let Some(own) = state.standing.get(path) else {
        let text = format!("{who} came to hold {path}, which is not there");
        return vec![("what is held has a znode", text)];
    };
    if own.owner != Some(session) {
        let text = format!(
            "{who} came to hold {path} in session {session}, but it belongs to {:?}",
            own.owner,
        );
        return vec![("what is held has a znode of its own session", text)];
    }
    Findings::new()
}
