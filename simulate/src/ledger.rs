//! What everybody says they hold, beside what the ensemble has committed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zookeeper_recipes_core::{Error, FencingToken, Hold, SessionEnd, SessionId};
use zookeeper_recipes_testkit::history::{self, History};
use zookeeper_recipes_testkit::simulation::{Change, Committed, Simulation};

use crate::invariants::{errors, fencing, loss, order, turn};
use crate::recipe::{PATH, RecipeUnderTest};

/// The znode that is written to under guard.
pub(crate) const GUARDED: &str = "/guarded";

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, by the simulation's clock.
    pub at: Duration,
    /// Which promise.
    pub promise: &'static str,
    /// What happened instead.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.as_secs_f64();
        write!(formatter, "at {at:.3}s: {}: {}", self.promise, self.text)
    }
}

/// What has happened in a run, counted: a run in which nothing happens proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Holds that were granted.
    pub grants: u64,
    /// Attempts that ended with an error.
    pub errors: u64,
    /// Attempts that were dropped half-way.
    pub aborted: u64,
    /// Holds that were lost.
    pub losses: u64,
    /// Guarded writes that were committed.
    pub guarded_writes: u64,
    /// Guarded writes that were refused.
    pub refused_writes: u64,
    /// Writes that a store refused for their token.
    pub stale_tokens: u64,
    /// Contenders' znodes that were deleted by hand.
    pub deleted_by_hand: u64,
    /// Sessions that came to their end by expiry.
    pub expired: u64,
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        self.grants += other.grants;
        self.errors += other.errors;
        self.aborted += other.aborted;
        self.losses += other.losses;
        self.guarded_writes += other.guarded_writes;
        self.refused_writes += other.refused_writes;
        self.stale_tokens += other.stale_tokens;
        self.deleted_by_hand += other.deleted_by_hand;
        self.expired += other.expired;
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} grants, {} lost; {} attempts failed, {} dropped; {} guarded writes, {} refused; \
             {} stale tokens refused; {} sessions expired, {} znodes deleted by hand",
            self.grants,
            self.losses,
            self.errors,
            self.aborted,
            self.guarded_writes,
            self.refused_writes,
            self.stale_tokens,
            self.expired,
            self.deleted_by_hand,
        )
    }
}

/// A znode that has been committed.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) owner: Option<SessionId>,
    /// The transaction that created it or, where it took another's place, that one.
    pub(crate) place: i64,
}

pub(crate) struct State {
    pub(crate) recipe: RecipeUnderTest,
    /// What everybody says.
    pub(crate) history: History,
    /// The znodes that have ever been held.
    pub(crate) granted: BTreeSet<String>,
    pub(crate) standing: BTreeMap<String, Standing>,
    pub(crate) ended: BTreeMap<SessionId, SessionEnd>,
    last_end: i64,
    last_created: (i64, String),
    /// Znodes that somebody has deleted by hand: nobody can know of that at once.
    pub(crate) deleted_by_hand: BTreeSet<String>,
    violations: Vec<Violation>,
    figures: Figures,
}

impl State {
    pub(crate) fn count_guarded_write(&mut self) {
        self.figures.guarded_writes += 1;
    }
}

/// The broken promises that a look has found.
pub(crate) type Findings = Vec<(&'static str, String)>;

pub(crate) fn findings(violations: impl IntoIterator<Item = history::Violation>) -> Findings {
    let violations = violations.into_iter();
    violations
        .map(|found| (found.promise, found.text))
        .collect()
}

/// The account of one run.
pub(crate) struct Ledger {
    simulation: Simulation,
    state: Mutex<State>,
}

impl Ledger {
    pub(crate) fn new(simulation: Simulation, recipe: RecipeUnderTest) -> Ledger {
        Ledger {
            simulation,
            state: Mutex::new(State {
                recipe,
                history: History::new(recipe.capacity),
                granted: BTreeSet::new(),
                standing: BTreeMap::new(),
                ended: BTreeMap::new(),
                last_end: 0,
                last_created: (0, String::new()),
                deleted_by_hand: BTreeSet::new(),
                violations: Vec::new(),
                figures: Figures::default(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, findings: Findings) {
        for (promise, text) in findings {
            self.violated(promise, text);
        }
    }

    pub(crate) fn violated(&self, promise: &'static str, text: String) {
        let at = self.simulation.now();
        self.simulation
            .remark(format!("VIOLATION: {promise}: {text}"));
        self.state()
            .violations
            .push(Violation { at, promise, text });
    }

    pub(crate) fn remark(&self, text: impl Into<String>) {
        self.simulation.remark(text);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.state().violations.is_empty()
    }

    pub(crate) fn finish(&self) -> (Vec<Violation>, Figures) {
        let mut state = self.state();
        let nothing = History::new(state.recipe.capacity);
        let history = std::mem::replace(&mut state.history, nothing);
        let result = (std::mem::take(&mut state.violations), state.figures);
        drop(state);
        drop(history);
        result
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.state().figures);
    }

    /// Somebody has come to a hold, this very moment.
    pub(crate) fn granted(&self, who: &str, weight: u64, hold: &Hold) -> u64 {
        self.remark(format!(
            "{who} is granted {} with token {} and weight {weight}: {:?}",
            hold.path(),
            hold.fencing_token(),
            hold.state(),
        ));
        let mut state = self.state();
        state.figures.grants += 1;
        state.granted.insert(hold.path().to_owned());
        let (number, violations) = state.history.granted(who, weight, hold);
        let mut findings = findings(violations);
        if state.history.is_certain(hold) {
            findings.extend(order::at_grant(&state, who, weight, hold));
        }
        drop(state);
        self.report(findings);
        number
    }

    /// The owner of a hold lets go of it: from here on it does not say that it holds.
    pub(crate) fn letting_go(&self, number: u64) {
        let held = self.state().history.letting_go(number);
        if let Some(held) = held {
            let state = held.hold.state();
            self.remark(format!(
                "{} lets go of {}: {state:?}",
                held.who,
                held.hold.path()
            ));
        }
    }

    /// A write arrives at a store that refuses old tokens.
    pub(crate) fn store(&self, weight: u64, token: FencingToken, number: u64) {
        let mut state = self.state();
        let (accepted, violation) = state.history.stored(number, weight, token);
        if !accepted {
            state.figures.stale_tokens += 1;
        }
        drop(state);
        self.report(findings(violation));
    }

    /// A guarded write was refused since the holder's znode was gone.
    pub(crate) fn refused(&self, number: u64) {
        let mut state = self.state();
        state.figures.refused_writes += 1;
        let violation = state.history.guarded_write_refused(number);
        drop(state);
        self.report(findings(violation));
    }

    /// A release has come back with the server's word.
    pub(crate) fn released(&self, who: &str, path: &str) {
        if self.state().standing.contains_key(path) {
            let text = format!("{who} has released {path}, which is still there");
            self.violated("a release has deleted the znode", text);
        }
    }

    /// An attempt has failed with this.
    pub(crate) fn failed(&self, who: &str, error: &Error) {
        self.remark(format!("{who} fails: {error}"));
        let mut state = self.state();
        state.figures.errors += 1;
        let findings = errors::at_failure(&state, who, error);
        drop(state);
        self.report(findings);
    }

    /// Somebody is about to delete this znode by hand.
    pub(crate) fn delete_by_hand(&self, path: &str) {
        let mut state = self.state();
        state.figures.deleted_by_hand += 1;
        state.deleted_by_hand.insert(path.to_owned());
        state.history.disregard_znode(path);
    }

    /// Somebody is about to end this session, however alive it is.
    pub(crate) fn end_by_hand(&self, session: SessionId) {
        self.state().history.disregard_session(session);
    }

    /// The contenders' znodes that stand now, in the order of their places, with their owners.
    pub(crate) fn contenders(&self) -> Vec<(String, Option<SessionId>)> {
        let state = self.state();
        let mut contenders: Vec<(i64, String, Option<SessionId>)> = state
            .standing
            .iter()
            .filter(|(path, _)| is_contender(&state.recipe, path))
            .map(|(path, node)| (node.place, path.clone(), node.owner))
            .collect();
        contenders.sort_unstable();
        contenders
            .into_iter()
            .map(|(_, path, owner)| (path, owner))
            .collect()
    }

    /// Looks whether somebody sleeps through a turn.
    pub(crate) fn look_at_turns(&self, patience: Duration, turns: &mut turn::Turns) {
        let findings = turn::at(&self.state(), self.simulation.now(), patience, turns);
        self.report(findings);
    }

    /// Takes in what the ensemble has just committed.
    pub(crate) fn committed(&self, committed: &Committed) {
        let mut state = self.state();
        let mut findings = Findings::new();
        match &committed.change {
            Change::Created {
                path,
                ephemeral_owner,
            } => {
                let standing = Standing {
                    owner: *ephemeral_owner,
                    place: committed.zxid,
                };
                state.standing.insert(path.clone(), standing);
                state.last_created = (committed.zxid, path.clone());
            }
            Change::Deleted { path } => {
                let gone = state.standing.remove(path);
                let (zxid, successor) = state.last_created.clone();
                if let (true, Some(gone)) = (zxid == committed.zxid, gone) {
                    if let Some(successor) = state.standing.get_mut(&successor) {
                        successor.place = gone.place;
                    }
                }
                let by_session_end = state.last_end == committed.zxid;
                findings.extend(loss::at_deletion(
                    &state,
                    path,
                    committed.session,
                    by_session_end,
                ));
            }
            Change::SessionEnded { session, end } => {
                state.last_end = committed.zxid;
                state.ended.insert(*session, *end);
                if *end == SessionEnd::Expired {
                    state.figures.expired += 1;
                }
            }
            Change::DataSet { path, data } if path == GUARDED => {
                findings.extend(fencing::at_guarded_write(&mut state, data));
            }
            Change::DataSet { .. } | Change::SessionOpened { .. } => {}
        }
        drop(state);
        self.report(findings);
    }
}

/// Whether a contender's znode is at this path.
pub(crate) fn is_contender(recipe: &RecipeUnderTest, path: &str) -> bool {
    if !recipe.queues {
        return path == PATH;
    }
    weight_at(recipe, path).is_some()
}

/// What the contender weighs whose znode is at this path.
pub(crate) fn weight_at(recipe: &RecipeUnderTest, path: &str) -> Option<u64> {
    let name = path.strip_prefix(PATH)?.strip_prefix('/')?;
    recipe.weight_of(name)
}
