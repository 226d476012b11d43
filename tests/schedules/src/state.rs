//! What a ledger knows of a run: what the contenders hold, and what the ensemble has committed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use zookeeper_recipes_core::{FencingToken, SessionEnd, SessionId};
use zookeeper_recipes_suite::TestedRecipe;
use zookeeper_recipes_testkit::history::History;

use crate::faults_met::FaultsMet;
use crate::figures::Figures;
use crate::findings::Violation;
use crate::invariants::observers::Observers;
use crate::invariants::succession::Succession;
use crate::place::Place;

/// A znode that has been committed.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) owner: Option<SessionId>,
    /// The transaction that created it, or the znode that it replaced.
    pub(crate) place: i64,
    /// The transaction that created it.
    created: i64,
}

/// All that a ledger knows of a run.
pub(crate) struct State {
    pub(crate) recipe: TestedRecipe,
    pub(crate) place: Place,
    /// The judge of exclusion, order and tokens.
    pub(crate) history: History,
    /// How much can be held in all, and since when: the last one now.
    pub(crate) capacities: Vec<(Duration, u64)>,
    /// The znodes that have ever been held.
    pub(crate) granted: BTreeSet<String>,
    pub(crate) standing: BTreeMap<String, Standing>,
    /// The places of all znodes that there ever were, by the transactions that created them.
    places: BTreeMap<(String, i64), i64>,
    /// Znodes that were deleted, and are there again since the servers came back with older data.
    pub(crate) ghosts: BTreeSet<String>,
    /// The znodes that have gone with the data of the servers.
    pub(crate) gone: BTreeSet<String>,
    /// The sessions that had ended, and are there again with older data of the servers.
    pub(crate) revived: BTreeSet<SessionId>,
    /// When the holds are lost whose znodes have gone with the data of the servers, at the latest.
    pub(crate) lost_by: Option<Duration>,
    /// The holds of these znodes that were granted later, and since when.
    pub(crate) granted_late: BTreeMap<u64, Duration>,
    /// The sessions that were opened since the servers have lost data.
    pub(crate) opened: BTreeSet<SessionId>,
    /// Since when the znode of guarded writes has gone with the data of the servers, and until when.
    pub(crate) unguarded: Option<(Duration, Option<Duration>)>,
    pub(crate) ended: BTreeMap<SessionId, SessionEnd>,
    pub(crate) last_end: i64,
    pub(crate) last_created: (i64, String),
    /// Whether rights have been taken away at some time.
    pub(crate) withholds: bool,
    /// Until when nobody lets go of what is held.
    pub(crate) detained_until: Duration,
    pub(crate) observers: Observers,
    pub(crate) succession: Succession,
    pub(crate) violations: Vec<Violation>,
    pub(crate) figures: Figures,
    pub(crate) met: FaultsMet,
}

impl State {
    pub(crate) fn new(recipe: TestedRecipe, place: Place) -> State {
        let history = History::new(recipe.capacity);
        State {
            recipe,
            place,
            history: match recipe.queues {
                true => history.ordered(),
                false => history,
            },
            capacities: vec![(Duration::ZERO, recipe.capacity)],
            granted: BTreeSet::new(),
            standing: BTreeMap::new(),
            places: BTreeMap::new(),
            ghosts: BTreeSet::new(),
            gone: BTreeSet::new(),
            revived: BTreeSet::new(),
            lost_by: None,
            granted_late: BTreeMap::new(),
            opened: BTreeSet::new(),
            unguarded: None,
            ended: BTreeMap::new(),
            last_end: 0,
            last_created: (0, String::new()),
            withholds: false,
            detained_until: Duration::ZERO,
            observers: Observers::default(),
            succession: Succession::default(),
            violations: Vec::new(),
            figures: Figures::default(),
            met: FaultsMet::default(),
        }
    }

    pub(crate) fn count_guarded_write(&mut self) {
        self.figures.guarded_writes += 1;
    }

    /// How much can be held in all, now.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacities
            .last()
            .map_or(self.recipe.capacity, |(_, capacity)| *capacity)
    }

    /// The contenders whose znodes exist now, in the order of their places, with their weights.
    pub(crate) fn queue(&self) -> Vec<(i64, &String, u64)> {
        let mut queue: Vec<(i64, &String, u64)> = self
            .standing
            .range(children_of(self.place.path))
            .filter_map(|(path, node)| Some((node.place, path, self.weight_at(path)?)))
            .collect();
        queue.sort_unstable();
        queue
    }

    /// What the contender weighs whose znode is at this path.
    fn weight_at(&self, path: &str) -> Option<u64> {
        let name = path.strip_prefix(self.place.path)?.strip_prefix('/')?;
        self.recipe.weight_of(name)
    }

    /// A znode was created, perhaps a contender's.
    pub(crate) fn created(&mut self, path: &str, owner: Option<SessionId>, place: i64) {
        let created = place;
        let standing = Standing {
            owner,
            place,
            created,
        };
        self.standing.insert(path.to_owned(), standing);
        self.places.insert((path.to_owned(), created), place);
        self.ghosts.remove(path);
        if let Some(weight) = self.weight_at(path) {
            self.history.came(FencingToken::from(place), weight);
        }
        self.last_created = (place, path.to_owned());
    }

    /// A znode was deleted. If another was created in the same transaction, that one has taken its
    /// place.
    pub(crate) fn deleted(&mut self, path: &str, zxid: i64) {
        let Some(gone) = self.standing.remove(path) else {
            return;
        };
        self.ghosts.remove(path);
        let (created, successor) = &self.last_created;
        let successor = self.standing.get_mut(successor);
        match successor.filter(|_| *created == zxid) {
            Some(successor) => {
                let (earlier, by) = (gone.place.into(), successor.place.into());
                self.history.replaced(earlier, by);
                successor.place = gone.place;
                let created = successor.created;
                let key = (self.last_created.1.clone(), created);
                self.places.insert(key, gone.place);
            }
            None => self.history.went(gone.place.into()),
        }
    }
}

impl State {
    /// The servers have come back with these znodes: their owners, and the transactions that created
    /// them.
    pub(crate) fn begin_anew(&mut self, znodes: Vec<(String, Option<SessionId>, i64)>) {
        let before = std::mem::take(&mut self.standing);
        let was = |path: &String, created: i64| {
            let before = before.get(path);
            before.is_some_and(|before| before.created == created)
        };
        self.ghosts.clear();
        for (path, owner, created) in znodes {
            let key = (path, created);
            let place = self.places.get(&key).copied().unwrap_or(created);
            if !was(&key.0, created) {
                // Nobody holds it, so it has no place in the order.
                self.ghosts.insert(key.0.clone());
            }
            let standing = Standing {
                owner,
                place,
                created,
            };
            self.standing.insert(key.0, standing);
        }
        let stands = |path: &String, created: i64| {
            let node = self.standing.get(path);
            node.is_some_and(|node| node.created == created)
        };
        let gone = before.iter().filter(|(path, it)| !stands(path, it.created));
        let gone = gone.filter_map(|(path, it)| Some((path.clone(), it.place.into(), it.owner?)));
        let gone: Vec<_> = gone.collect();
        self.gone.extend(gone.iter().map(|(path, ..)| path.clone()));
        self.history.lose(gone);
        (self.last_end, self.last_created) = (0, (0, String::new()));
    }
}

impl State {
    /// A session is there again, perhaps one that had ended. Its client need not know that: what waits
    /// in the session can hold then, beside a contender that came to hold after its end.
    pub(crate) fn revive(&mut self, session: SessionId) {
        if self.ended.remove(&session).is_some() {
            self.history.disregard_session(session);
            self.revived.insert(session);
        }
    }
}

/// Where the children of a znode are among all paths.
fn children_of(path: &str) -> std::ops::Range<String> {
    format!("{path}/")..format!("{path}0")
}
