//! First come, first served, by what the ensemble has committed.

use crate::ledger::{Findings, Held, State};

/// Whoever comes to hold has a znode of its own session, and what is before that one leaves room,
/// or has left it since this one came: see [`room`](super::room).
///
/// Judged on the committed znodes, up to the moment of the grant. The contender may have judged on
/// older ones, but nobody gets in before another: those before it can only have become fewer.
pub(crate) fn at_grant(state: &State, new: &Held) -> Findings {
    let path = new.hold.node_path();
    let session = new.hold.session_id();
    let Some(own) = state.standing.get(path) else {
        let text = format!("{} came to hold {path}, which is not there", new.who);
        return vec![("what is held has a znode", text)];
    };
    if own.owner != Some(session) {
        let text = format!(
            "{} came to hold {path} in session {session}, but it belongs to {:?}",
            new.who, own.owner,
        );
        return vec![("what is held has a znode of its own session", text)];
    }
    if !state.recipe.queues {
        return Findings::new();
    }
    if own.room.is_some() {
        return Findings::new();
    }
    let before: Vec<_> = state
        .queue()
        .into_iter()
        .filter(|(place, _, _)| *place < own.place)
        .collect();
    let text = format!("{} came to hold {path} before {before:?}", new.who);
    vec![("first come, first served", text)]
}
