//! The sessions: what each holds, and for whom each waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;
use serde_json::{Value, json};
use zookeeper_recipes_overview::{ContenderState, SessionId, SessionStatus};

use super::snapshot::Snapshot;

/// The most sessions of an answer.
const MAX_SESSIONS: usize = 2_000;

/// The most places of a session in an answer.
const MAX_PLACES: usize = 100;

/// A session, and its places.
#[derive(Serialize)]
struct SessionRow {
    session: String,
    address: Option<String>,
    /// Who it is, as the data of its contenders say.
    owners: BTreeSet<String>,
    /// How many contenders hold, and in which queues the first of them do.
    holding: usize,
    holds: Vec<String>,
    waiting: usize,
    waits: Vec<Wait>,
    /// How many other sessions wait for it directly.
    blocks: usize,
    in_circle: bool,
    znodes: usize,
    near_limit: bool,
}

#[derive(Serialize)]
struct Wait {
    path: String,
    since_ms: i64,
    /// The sessions that it waits for.
    r#for: BTreeSet<String>,
}

impl Snapshot {
    /// The sessions, those that others wait for first.
    pub(super) fn sessions(&self) -> Value {
        let mut sessions: HashMap<SessionId, SessionRow> = HashMap::new();
        let circles = self.overview().circles().iter().flat_map(|it| &it.waits);
        let in_circle: HashSet<SessionId> = circles.map(|it| it.waiter.session_id).collect();
        for status in self.overview().sessions() {
            let is_in_circle = in_circle.contains(&status.session_id);
            let row = self.session_row(&status, is_in_circle);
            sessions.insert(status.session_id, row);
        }
        let mut blocked: BTreeMap<SessionId, BTreeSet<SessionId>> = BTreeMap::new();
        for queue in self.overview().queues() {
            let rows = self.contenders(queue);
            for row in &rows {
                let id = row.contender.session_id;
                let Some(session) = sessions.get_mut(&id) else {
                    continue;
                };
                let path = || queue.path().to_owned();
                let owner = &*row.contender.owner;
                if !owner.is_empty() && session.owners.len() < MAX_PLACES {
                    session.owners.insert(owner.to_owned());
                }
                match &row.contender.state {
                    ContenderState::Holds if session.holds.len() < MAX_PLACES => {
                        session.holds.push(path());
                    }
                    ContenderState::WaitsFor(places) => {
                        let others = places.iter().filter_map(|place| rows.get(*place));
                        let others = others.map(|it| it.contender.session_id);
                        let others: BTreeSet<SessionId> =
                            others.filter(|other| *other != id).collect();
                        for other in &others {
                            blocked.entry(*other).or_default().insert(id);
                        }
                        if session.waits.len() < MAX_PLACES {
                            session.waits.push(Wait {
                                path: path(),
                                since_ms: row.created(),
                                r#for: others.iter().map(SessionId::to_string).collect(),
                            });
                        }
                    }
                    ContenderState::Holds | ContenderState::Unknown => {}
                }
            }
        }
        for (id, waiters) in blocked {
            if let Some(session) = sessions.get_mut(&id) {
                session.blocks = waiters.len();
            }
        }
        let mut sessions: Vec<SessionRow> = sessions.into_values().collect();
        sessions.sort_by(|one, other| {
            let rank = |it: &SessionRow| (it.in_circle, it.blocks, it.waiting, it.holding);
            let order = rank(other).cmp(&rank(one));
            order.then_with(|| one.session.cmp(&other.session))
        });
        let left_out = sessions.len().saturating_sub(MAX_SESSIONS);
        sessions.truncate(MAX_SESSIONS);
        json!({ "sessions": sessions, "left_out": left_out })
    }

    fn session_row(&self, status: &SessionStatus, in_circle: bool) -> SessionRow {
        SessionRow {
            session: status.session_id.to_string(),
            address: self.addresses.of(status.session_id),
            owners: BTreeSet::new(),
            holding: status.holds,
            holds: Vec::new(),
            waiting: status.waits,
            waits: Vec::new(),
            blocks: 0,
            in_circle,
            znodes: status.znodes,
            near_limit: status.is_near_its_limit(),
        }
    }
}
