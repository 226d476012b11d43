//! What is written with an old token is refused.

use zookeeper_recipes_core::FencingToken;

use crate::ledger::{Findings, State, findings};

/// A guarded write was committed: `data` says the token and the znode of its writer.
///
/// The writer's znode stands at that moment, and nobody who excludes all others has written before
/// with a newer token.
pub(crate) fn at_guarded_write(state: &mut State, data: &[u8]) -> Findings {
    let text = String::from_utf8_lossy(data).into_owned();
    let mut words = text.split(' ');
    let (Some(token), Some(weight), Some(path)) = (
        words.next().and_then(|word| word.parse::<i64>().ok()),
        words.next().and_then(|word| word.parse::<u64>().ok()),
        words.next(),
    ) else {
        return vec![("a guarded write is whole", text)];
    };
    state.count_guarded_write();
    let mut found = Findings::new();
    let place = state.standing.get(path).map(|node| node.place);
    // All holders of a lock of one znode have the same path; by hand it can be taken from one and
    // given to another unnoticed, as its documentation says.
    let excused = !state.recipe.queues && state.deleted_by_hand.contains(path);
    if place != Some(token) && !excused {
        let text = format!("token {token}, while {path} stands for {place:?}");
        found.push(("a guarded write from the past is refused", text));
    }
    let token = FencingToken::from(token);
    let out_of_order = state.history.guarded_write_committed(weight, token);
    if !excused {
        found.extend(findings(out_of_order));
    }
    found
}
