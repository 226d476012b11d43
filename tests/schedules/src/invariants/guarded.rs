//! What is written under guard is written by a holder, in the order of the tokens.

use std::time::Duration;

use zookeeper_recipes_core::FencingToken;

use crate::findings::{Findings, found};
use crate::state::State;

/// A guarded write was committed: `data` says the token and the znode of its writer.
///
/// The writer's znode exists at that moment. No contender that excludes the writer has written
/// before with a newer token, unless the writer's session had ended before servers restored it.
pub(crate) fn at_commit(state: &mut State, data: &[u8]) -> Findings {
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
    let node = state.standing.get(path);
    let place = node.map(|node| node.place);
    // A waiter whose session is there again can hold beside another contender: see `State::revive`.
    let owner = node.and_then(|node| node.owner);
    let is_revived = owner.is_some_and(|owner| state.revived.contains(&owner));
    if place != Some(token) {
        let text = format!("token {token}, while {path} has the place {place:?}");
        findings.push(("a guarded write from the past is refused", text));
    }
    if !is_revived {
        let token = FencingToken::from(token);
        let violation = state.history.guarded_write_committed(weight, token);
        findings.extend(found(violation));
    }
    findings
}

/// A znode was created, perhaps the one of guarded writes, which had gone with the servers' data.
pub(crate) fn at_creation(state: &mut State, now: Duration, path: &str) {
    if path == state.place.guarded {
        if let Some((_, until)) = &mut state.unguarded {
            until.get_or_insert(now);
        }
    }
}

/// True if a write to this path, which was sent at this time or later, may have found no znode.
pub(crate) fn was_missing(state: &State, path: &str, since: Duration) -> bool {
    let missing = state.unguarded.filter(|_| path == state.place.guarded);
    missing.is_some_and(|(_, until)| until.is_none_or(|until| until >= since))
}
