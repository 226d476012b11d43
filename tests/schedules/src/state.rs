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
        self.standing
            .insert(path.to_owned(), Standing { owner, place });
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
        let (created, successor) = &self.last_created;
        let successor = self.standing.get_mut(successor);
        match successor.filter(|_| *created == zxid) {
            Some(successor) => {
                let (earlier, by) = (gone.place.into(), successor.place.into());
                self.history.replaced(earlier, by);
                successor.place = gone.place;
            }
            None => self.history.went(gone.place.into()),
        }
    }
}

/// Where the children of a znode are among all paths.
fn children_of(path: &str) -> std::ops::Range<String> {
    format!("{path}/")..format!("{path}0")
}
