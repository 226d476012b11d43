//! Nobody sleeps through a turn.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::findings::Findings;
use crate::state::State;

/// The contenders whose turn has come by what the ensemble has committed, and since when.
pub(crate) type Turns = BTreeMap<String, Duration>;

/// A contender whose turn has come holds soon after. Check this again and again, while no fault
/// happens.
pub(crate) fn at(state: &State, now: Duration, patience: Duration, turns: &mut Turns) -> Findings {
    let mut before = 0;
    let mut come = Turns::new();
    for (_, path, weight) in state.queue() {
        before += weight;
        if before <= state.capacity() && !state.granted.contains(path) {
            let since = turns.get(path).copied().unwrap_or(now);
            come.insert(path.clone(), since);
        }
    }
    *turns = come;
    turns
        .iter()
        .filter(|(_, since)| now > **since + patience)
        .map(|(path, since)| {
            let text = format!("{path} could be held since {since:?}");
            ("nobody sleeps through a turn", text)
        })
        .collect()
}
