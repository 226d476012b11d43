//! The steps of the protocol that a client is about when a fault meets it.

use std::collections::BTreeSet;

use zookeeper_recipes_simulation::{FaultMet, RequestKind};

use crate::state::State;

/// The steps that a client is about.
pub(crate) fn of(state: &State, met: &FaultMet) -> BTreeSet<&'static str> {
    let Some(session) = met.session else {
        return BTreeSet::from(["connect"]);
    };
    let asked = met.asked.iter().filter_map(|kind| match kind {
        RequestKind::SetWatches => Some("set watches"),
        RequestKind::Create => Some("create"),
        RequestKind::List => Some("list"),
        RequestKind::Get | RequestKind::Exists | RequestKind::GetEach => Some("read"),
        RequestKind::RemoveWatch => Some("unwatch"),
        RequestKind::Transact => Some("transact"),
        RequestKind::Delete => Some("delete"),
        RequestKind::CloseSession => Some("close"),
        _ => None,
    });
    let mut steps: BTreeSet<_> = asked.collect();
    if met.fault == "handshake slow" {
        steps.insert("connect");
    }
    let held = state.history.held();
    let holds = held.map(|(_, held)| held.hold.session_id() == session);
    if holds.into_iter().any(|holds| holds) {
        steps.insert("hold");
    }
    let owns = |path: &str| {
        let node = state.standing.get(path);
        node.is_some_and(|node| node.owner == Some(session))
    };
    let queue = state.queue();
    let mut own = queue.iter().enumerate().filter(|(_, it)| owns(it.1));
    let is_granted = |path: &String| state.granted.contains(path);
    if let Some((position, _)) = own.find(|(_, it)| !is_granted(it.1)) {
        steps.insert(if position == 0 { "grant" } else { "wait" });
    }
    steps
}
