//! A znode of a hold that is lost bars nobody for long.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::findings::Findings;
use crate::state::State;

/// The contenders' znodes that were held and that nobody holds, and since when.
pub(crate) type Barring = BTreeMap<String, Duration>;

/// The znode of a hold that is lost is gone in time: its owner has deleted it, or its session has
/// ended. Check this again and again, while the servers elect no other leader.
pub(crate) fn at(
    state: &State,
    now: Duration,
    patience: Duration,
    barring: &mut Barring,
) -> Findings {
    let is_held = |path: &str| {
        let mut held = state.history.held();
        held.any(|(_, it)| it.hold.node_path() == path && it.hold.state().ended().is_none())
    };
    let queue = state.queue();
    let lost = queue.iter().map(|(_, path, _)| *path);
    let lost = lost.filter(|path| state.granted.contains(*path) && !is_held(path));
    *barring = lost
        .map(|path| (path.clone(), barring.get(path).copied().unwrap_or(now)))
        .collect();
    let late = barring.iter().filter(|(_, since)| now > **since + patience);
    late.map(|(path, since)| {
        let text = format!("{path} is held by nobody since {since:?}");
        ("what is lost bars nobody for long", text)
    })
    .collect()
}
