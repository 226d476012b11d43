//! How much can be held in all, as the recipe's own znode says.

use std::time::Duration;

use super::errors::Asked;
use crate::findings::Findings;
use crate::state::State;

/// Takes in what the recipe's own znode says of how much can be held.
pub(crate) fn at_data(state: &mut State, now: Duration, path: &str, data: &[u8]) {
    if !state.recipe.resizes || path != state.place.path {
        return;
    }
    let number = std::str::from_utf8(data)
        .ok()
        .and_then(|it| it.parse().ok());
    if let Some(capacity) = number.filter(|it| *it != state.capacity()) {
        state.capacities.push((now, capacity));
        state.history.resized(capacity);
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
