//! A leader's work stops before another leads, and each candidate has resigned in the end.

use zookeeper_recipes_core::{HoldState, SessionId};
use zookeeper_recipes_election::StopWork;

use crate::findings::Findings;
use crate::state::State;

/// The work of a leader continues: it leads by its own account, and no other candidate does by its
/// own.
///
/// The check runs whenever the work moves. So it also runs when a process that was asleep
/// continues: work that sleeps does not move.
pub(crate) fn at_step(state: &State, number: u64, stop: StopWork) -> Findings {
    let Some(own) = state.history.holder(number) else {
        let text = format!("what was let go of as number {number}");
        return vec![("a leader works only while it leads", text)];
    };
    let leads = match own.hold.state() {
        HoldState::Held => true,
        HoldState::Suspended => stop == StopWork::WhenLost,
        HoldState::Released | HoldState::Lost(_) => false,
    };
    let mut findings = Findings::new();
    if !leads {
        let text = format!("{}: {:?}", own.who, own.hold);
        findings.push(("a leader works only while it leads", text));
    }
    let other = state
        .history
        .held()
        .filter(|(other, _)| *other != number)
        .map(|(_, other)| other)
        .find(|other| state.history.is_certain(&other.hold));
    if let Some(other) = other.filter(|_| !state.history.is_disregarded(&own.hold)) {
        let text = format!(
            "{} works, while {} leads with {:?}",
            own.who, other.who, other.hold
        );
        findings.push(("a leader's work stops before another leads", text));
    }
    findings
}

/// A campaign has ended, and the znode that it has led with still exists: only if its session is
/// over.
pub(crate) fn at_end(
    who: &str,
    session: Option<SessionId>,
    (path, led_in): &(String, SessionId),
) -> Findings {
    if session != Some(*led_in) {
        return Findings::new();
    }
    let text = format!("{who} ran for leader to the end, and {path} is still there");
    vec![("who ran for leader has resigned in the end", text)]
}
