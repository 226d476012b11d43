//! First come, first served, by what the ensemble has committed.

use zookeeper_recipes_core::Hold;

use crate::ledger::{Findings, State, weight_at};
use crate::recipe::PATH;

/// Whoever comes to hold has a znode of its own session, and what is before that one leaves room.
///
/// Judged on the committed znodes at the moment of the grant. The contender may have judged on
/// older ones, but nobody gets in before another: those before it can only have become fewer.
pub(crate) fn at_grant(state: &State, who: &str, own_weight: u64, hold: &Hold) -> Findings {
    let path = hold.path();
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
    if !state.recipe.queues {
        return Findings::new();
    }
    let before: Vec<(&String, u64)> = state
        .standing
        .range(format!("{PATH}/")..format!("{PATH}0"))
        .filter(|(_, other)| other.place < own.place)
        .filter_map(|(path, _)| Some((path, weight_at(&state.recipe, path)?)))
        .collect();
    let weight: u64 = before.iter().map(|(_, weight)| weight).sum();
    if weight + own_weight <= state.recipe.capacity {
        return Findings::new();
    }
    let text = format!("{who} came to hold {path} before {before:?}");
    vec![("first come, first served", text)]
}
