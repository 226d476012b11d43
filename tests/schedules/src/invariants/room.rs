//! Nobody is let in where there is no room, however the room changes.

use std::time::Duration;

use super::errors::Asked;
use crate::ledger::{Findings, State, children_of, weight_at};

/// Takes in what the recipe's own znode says of how much can be held.
pub(crate) fn at_data(state: &mut State, now: Duration, path: &str, data: &[u8]) {
    if !state.recipe.resizes || path != state.recipe.path {
        return;
    }
    let number = std::str::from_utf8(data)
        .ok()
        .and_then(|it| it.parse().ok());
    if let Some(capacity) = number.filter(|it| *it != state.capacity()) {
        state.capacities.push((now, capacity));
    }
}

/// Notes for whom there is room, after each change.
///
/// A contender judges by those before it and by a number that it has read *after* it came: there
/// has been a moment since at which that number was in force and, since those before can only
/// become fewer, they and it fitted in. So whoever holds has had room at some moment, whatever
/// the number is by now.
pub(crate) fn at_change(state: &mut State) {
    let capacity = state.capacity();
    let recipe = state.recipe;
    let mut queue: Vec<_> = state
        .standing
        .range_mut(children_of(recipe.path))
        .filter_map(|(path, node)| Some((weight_at(&recipe, path)?, node)))
        .collect();
    queue.sort_unstable_by_key(|(_, node)| node.place);
    let mut weight = 0;
    for (own, node) in queue {
        weight += own;
        if weight <= capacity {
            node.room = node.room.max(Some(capacity));
        }
    }
}

/// A resize has come back: what was asked for was in force at some moment since.
pub(crate) fn at_resize(state: &State, who: &str, asked: &Asked, to: u64) -> Findings {
    if asked.capacities(state).any(|capacity| capacity == to) {
        return Findings::new();
    }
    let text = format!("{who} has resized to {to}: {:?}", state.capacities);
    vec![("a resize is in force when it comes back", text)]
}
