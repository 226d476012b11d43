//! After the servers have lost data, a hold whose znode has gone lasts no longer than its lease.
//!
//! No client can prevent that another holds meanwhile: it learns of the loss when it reaches a server.

use std::time::Duration;

use zookeeper_recipes_core::{HoldView, SessionId};
use zookeeper_recipes_simulation::{Change, Committed};

use super::{observers, room, succession};
use crate::findings::Findings;
use crate::state::State;

/// The servers have come back with this data: what was committed before no longer counts.
pub(crate) fn at_loss(state: &mut State, now: Duration, data: &[Committed]) {
    let created = data.iter().filter_map(|it| match &it.change {
        Change::Created {
            path,
            ephemeral_owner,
            ..
        } => Some((path.clone(), *ephemeral_owner, it.zxid)),
        _ => None,
    });
    state.begin_anew(created.collect());
    state.opened.clear();
    if !state.standing.contains_key(state.place.guarded) {
        state.unguarded = Some((now, None));
    }
    for committed in data {
        if let Change::SessionOpened { session } = committed.change {
            state.revive(session);
        }
    }
    observers::begin_anew(&mut state.observers);
    succession::begin_anew(&mut state.succession);
    for committed in data {
        if let Change::Created { path, data, .. } = &committed.change {
            room::at_data(state, now, path, data);
            succession::at_data(&mut state.succession, state.place.path, path, data);
        }
    }
}

/// A contender holds. If its znode has gone, it had the answer before the servers lost it, and its task
/// may not have been polled since.
pub(crate) fn at_grant(state: &mut State, now: Duration, number: u64, hold: &HoldView) {
    if state.history.is_gone(hold) {
        state.granted_late.insert(number, now);
    }
}

/// A znode is about to be deleted, by this session. The owner of an earlier one at the same path may
/// not know that its own has gone.
pub(crate) fn at_deletion(state: &mut State, now: Duration, path: &str, by: Option<SessionId>) {
    let is_unsure = state.lost_by.is_some_and(|until| now <= until) && state.gone.contains(path);
    let node = state.standing.get(path).filter(|_| is_unsure);
    let Some((place, owner)) = node.and_then(|node| Some((node.place, node.owner?))) else {
        return;
    };
    if by.is_some_and(|by| by != owner) {
        state.history.disregard_hold(path, place.into(), owner);
    }
}

/// No hold whose znode has gone lasts for longer than this since its grant, or since the loss. All that
/// began before the loss are lost by now.
pub(crate) fn at_deadline(state: &State, now: Duration, patience: Duration) -> Findings {
    let held = state.history.held();
    let gone = held.filter(|(_, it)| it.hold.is_held() && state.history.is_gone(&it.hold));
    let is_late = |number: &u64| {
        let since = state.granted_late.get(number);
        since.is_none_or(|since| now >= *since + patience)
    };
    let late = gone.filter(|(number, _)| is_late(number));
    late.map(|(_, it)| found(&it.who, &it.hold)).collect()
}

/// As [`at_deadline`], of a hold that was granted elsewhere.
pub(crate) fn at_look(state: &State, now: Duration, who: &str, hold: &HoldView) -> Findings {
    let is_late = state.lost_by.is_some_and(|by| now >= by);
    let is_broken = is_late && state.history.is_gone(hold) && hold.is_held();
    is_broken.then(|| found(who, hold)).into_iter().collect()
}

fn found(who: &str, hold: &HoldView) -> (&'static str, String) {
    let promise = "what has gone with the servers' data is lost when its lease ends";
    (promise, format!("{who}: {hold:?}"))
}
