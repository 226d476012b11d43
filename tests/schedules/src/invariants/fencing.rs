//! Tokens grow with every grant, and what is written with an old one is refused.

use zookeeper_recipes_core::{FencingToken, SessionId};

use crate::ledger::{Findings, Granted, Held, State};

/// A new holder's token is newer than that of every earlier holder whom it excludes.
pub(crate) fn at_grant(state: &State, new: &Held) -> Findings {
    let token = new.hold.fencing_token();
    let newer = state
        .newest
        .values()
        .filter(|earlier| state.recipe.excludes(earlier.weight, new.weight))
        // Handed over within a process, or gone on with as another kind: one place, one token.
        .find(|earlier| earlier.token > token);
    match newer {
        None => Findings::new(),
        Some(earlier) => {
            let text = format!(
                "{} came to hold with token {token}, after {} with {} at {}",
                new.who, earlier.who, earlier.token, earlier.path,
            );
            vec![("tokens grow with every grant", text)]
        }
    }
}

pub(crate) fn remember(state: &mut State, new: &Held) {
    let granted = Granted {
        who: new.who.clone(),
        weight: new.weight,
        token: new.hold.fencing_token(),
        path: new.hold.node_path().to_owned(),
    };
    let newest = state.newest.get(&new.weight);
    if newest.is_none_or(|newest| newest.token < granted.token) {
        state.newest.insert(new.weight, granted);
    }
}

/// A write arrives at a store that keeps the newest token of those who exclude all others, and
/// refuses older ones. It refuses nobody who holds.
pub(crate) fn at_store(
    state: &mut State,
    weight: u64,
    token: FencingToken,
    number: u64,
) -> (bool, Findings) {
    if state.store.is_some_and(|newest| token < newest) {
        let holder = state
            .held
            .get(&number)
            .filter(|held| state.is_certain(&held.hold));
        let findings = match holder {
            Some(held) => {
                let text = format!("{held:?}, the store having seen {:?}", state.store);
                vec![("no holder's token is refused", text)]
            }
            None => Findings::new(),
        };
        return (false, findings);
    }
    if state.recipe.is_exclusive(weight) {
        state.store = Some(token);
    }
    (true, Findings::new())
}

/// A guarded write was committed: `data` says the token and the znode of its writer.
///
/// The writer's znode stands at that moment, and nobody who excludes it has written before with a
/// newer token.
pub(crate) fn at_guarded_write(
    state: &mut State,
    data: &[u8],
    writer: Option<SessionId>,
) -> Findings {
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
    let mut findings = Findings::new();
    let place = state.standing.get(path).map(|node| node.place);
    // All holders of a lock of one znode have the same path; by hand it can be taken from one and
    // given to another unnoticed, and by a server that puts a client into another session, as its
    // documentation says.
    let owner = state.owners.get(&token).copied().flatten();
    let is_unnoticed = state.deleted_by_hand.contains(path) || owner != writer;
    let excused = !state.recipe.queues && is_unnoticed;
    if place != Some(token) && !excused {
        let text = format!("token {token}, while {path} stands for {place:?}");
        findings.push(("a guarded write from the past is refused", text));
    }
    if state.recipe.is_exclusive(weight) {
        if token < state.guarded && !excused {
            let text = format!("token {token} after {}", state.guarded);
            findings.push(("guarded writes come in the order of their tokens", text));
        }
        state.guarded = state.guarded.max(token);
    }
    findings
}
