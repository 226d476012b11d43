//! At most as much is held as can be, by each holder's own account.

use crate::ledger::{Findings, Held, State};

/// Whoever comes to hold joins only those whose own account still says "held".
///
/// An account never goes from "lost" back to "held", so two certain intervals overlap just when
/// the earlier one still lasts as the later one begins: looking then is looking always.
pub(crate) fn at_grant(state: &State, new: &Held) -> Findings {
    let others: Vec<&Held> = state
        .held
        .values()
        .filter(|other| state.is_certain(&other.hold))
        .collect();
    let weight: u64 = others.iter().map(|other| other.weight).sum();
    if weight + new.weight <= capacity(state, &others, new) {
        return Findings::new();
    }
    let others: Vec<String> = others
        .iter()
        .map(|other| format!("{} ({:?})", other.who, other.hold))
        .collect();
    let text = format!(
        "{} came to hold {:?} while it was held by {}",
        new.who,
        new.hold,
        others.join(" and "),
    );
    vec![("no more is held at a time than can be", text)]
}

/// How much could be held when the last of them in the queue was let in: it came after all the
/// others, so that they were counted. Who has come later is judged by what was in force later.
fn capacity(state: &State, others: &[&Held], new: &Held) -> u64 {
    if !state.recipe.resizes {
        return state.recipe.capacity;
    }
    others
        .iter()
        .chain([&new])
        .filter_map(|held| state.standing.get(held.hold.node_path()))
        .max_by_key(|node| node.place)
        .and_then(|last| last.room)
        .unwrap_or(0)
}
