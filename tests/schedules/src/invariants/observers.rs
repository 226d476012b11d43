//! Observers learn who leads: in order, nothing that is wrong, and in the end the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use zookeeper_recipes_core::{FencingToken, Session};
use zookeeper_recipes_simulation::Committed;

use crate::findings::Findings;

/// Who leads by what the ensemble has committed, and what the observers know of it.
#[derive(Default)]
pub(crate) struct Observers {
    told: BTreeMap<String, Told>,
    /// The znode that leads now, by its token, and since when.
    leader: Option<i64>,
    since: Duration,
    /// All that have ever led.
    leaders: BTreeSet<i64>,
    /// All that have led before the servers lost data.
    before: BTreeSet<i64>,
    /// The last transaction after which nobody led.
    last_vacancy: i64,
}

/// What was reported to one of them.
struct Told {
    /// Kept open by it.
    _session: Session,
    last: Option<Option<FencingToken>>,
    newest: Option<FencingToken>,
}

impl Observers {
    /// One begins, or begins anew.
    pub(crate) fn begin(&mut self, who: &str, session: Session) {
        let told = Told {
            _session: session,
            last: None,
            newest: None,
        };
        self.told.insert(who.to_owned(), told);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.told.keys().cloned().collect()
    }

    pub(crate) fn end(&mut self) {
        self.told.clear();
    }
}

/// The servers have lost data: the tokens of leaders begin anew.
pub(crate) fn begin_anew(observers: &mut Observers) {
    observers.before.append(&mut observers.leaders);
    observers.last_vacancy = 0;
    for told in observers.told.values_mut() {
        told.newest = None;
    }
}

/// Takes in what was committed, after which this one leads.
pub(crate) fn at_change(observers: &mut Observers, leader: Option<i64>, committed: &Committed) {
    if leader.is_none() {
        observers.last_vacancy = committed.zxid;
    }
    observers.leaders.extend(leader);
    if leader != observers.leader {
        observers.leader = leader;
        observers.since = committed.at;
    }
}

/// An observer is notified of a change. Either a candidate has led, and later than all candidates
/// that it was notified of before; or nobody leads, and there has been such a moment since.
pub(crate) fn at_news(
    observers: &mut Observers,
    who: &str,
    leader: Option<FencingToken>,
) -> Findings {
    let is_of_before = leader.is_some_and(|leader| {
        let led = |leaders: &BTreeSet<i64>| leaders.contains(&leader.get());
        led(&observers.before) && !led(&observers.leaders)
    });
    let vacant = observers.last_vacancy;
    let is_vacant = observers.leader.is_none();
    let has_led = leader.is_none_or(|leader| observers.leaders.contains(&leader.get()));
    let Some(told) = observers.told.get_mut(who) else {
        return vec![("an observer learns only while it observes", who.to_owned())];
    };
    if is_of_before {
        // The news were on their way when the servers lost data.
        told.last = Some(leader);
        return Findings::new();
    }
    let (last, newest) = (told.last, told.newest);
    let known = newest.map(|newest| newest.get());
    let has_skipped = observers.leaders.last().copied() > known;
    told.last = Some(leader);
    told.newest = newest.max(leader);
    let text = || format!("{who} learns of {leader:?} after {last:?}, the newest being {newest:?}");
    let mut findings = Findings::new();
    match leader {
        Some(_) if !has_led => {
            findings.push(("an observer learns only of those that have led", text()));
        }
        // A leader that still leads may have a new id.
        Some(_) if last == Some(leader) => {}
        Some(_) if leader <= newest => {
            findings.push(("an observer learns of no leader after a newer one", text()));
        }
        Some(_) => {}
        // It may have skipped one that led and left meanwhile.
        None if last == Some(None) && !has_skipped => {
            findings.push(("an observer learns of changes", text()));
        }
        None if !is_vacant && newest.is_some_and(|newest| vacant < newest.get()) => {
            let promise = "an observer learns of a vacancy only if there was one";
            findings.push((promise, text()));
        }
        None => {}
    }
    findings
}

/// The observers that do not know the leader, though it has led for longer than `patience`.
pub(crate) fn mistaken(observers: &Observers, now: Duration, patience: Duration) -> Findings {
    if now <= observers.since + patience {
        return Findings::new();
    }
    let leader = observers.leader.map(FencingToken::from);
    observers
        .told
        .iter()
        .filter(|(_, told)| told.last != Some(leader))
        .map(|(who, told)| {
            let text = format!(
                "{who} learned {:?} last, while {leader:?} has led since {:?}",
                told.last, observers.since,
            );
            ("an observer learns who leads", text)
        })
        .collect()
}
