//! What everybody says they hold, beside what the ensemble has committed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zookeeper_recipes_core::{
    Error, FencingToken, HoldView, Refusal, Session, SessionEnd, SessionId,
};
use zookeeper_recipes_election::StopWork;
use zookeeper_recipes_testkit::simulation::{Change, Committed, SimulatedProcess, Simulation};

use crate::invariants::errors::Asked;
use crate::invariants::observers::{self, Observers};
use crate::invariants::{calm, errors, exclusion, fencing, loss, order, release, room, turn, work};
use crate::recipe::RecipeUnderTest;

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
    /// How often two recipes were held together.
    pub together: u64,
    /// How often it was changed how much can be held.
    pub resized: u64,
    /// Terms that leaders have worked for.
    pub terms: u64,
    /// What observers were told of who leads.
    pub news: u64,
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
        self.together += other.together;
        self.resized += other.resized;
        self.terms += other.terms;
        self.news += other.news;
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} grants, {} lost; {} attempts failed, {} dropped; {} guarded writes, {} refused; \
             {} stale tokens refused; {} sessions expired, {} znodes deleted by hand; {} held \
             together; {} resized; {} terms, {} news of leaders",
            self.grants,
            self.losses,
            self.errors,
            self.aborted,
            self.guarded_writes,
            self.refused_writes,
            self.stale_tokens,
            self.expired,
            self.deleted_by_hand,
            self.together,
            self.resized,
            self.terms,
            self.news,
        )
    }
}

/// A hold that its owner has not let go of.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) who: String,
    pub(crate) weight: u64,
    /// Asked whenever it matters whether it is held.
    pub(crate) hold: HoldView,
}

/// A znode that has been committed.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) owner: Option<SessionId>,
    /// The transaction that created it or, where it took another's place, that one.
    pub(crate) place: i64,
    /// The most that could be held in all at a moment when there was room for this one.
    pub(crate) room: Option<u64>,
}

/// A hold that was granted at some time.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) who: String,
    pub(crate) weight: u64,
    pub(crate) token: FencingToken,
    pub(crate) path: String,
}

pub(crate) struct State {
    pub(crate) recipe: RecipeUnderTest,
    /// How much can be held in all, and since when: the last one now.
    pub(crate) capacities: Vec<(Duration, u64)>,
    pub(crate) held: BTreeMap<u64, Held>,
    /// The znodes that have ever been held.
    pub(crate) granted: BTreeSet<String>,
    next_hold: u64,
    /// Of each weight, the grant with the newest token.
    pub(crate) newest: BTreeMap<u64, Granted>,
    pub(crate) standing: BTreeMap<String, Standing>,
    /// Who has owned the one znode that is the lock, by the transaction that created it.
    pub(crate) owners: BTreeMap<i64, Option<SessionId>>,
    pub(crate) ended: BTreeMap<SessionId, SessionEnd>,
    last_end: i64,
    last_created: (i64, String),
    /// Znodes that somebody has deleted by hand: nobody can know of that at once.
    pub(crate) deleted_by_hand: BTreeSet<String>,
    /// Sessions that were ended without their having been silent for their timeout.
    pub(crate) ended_by_hand: BTreeSet<SessionId>,
    /// Whether rights have been taken away at some time.
    pub(crate) withholds: bool,
    /// Until when nobody lets go of what is held.
    detained_until: Duration,
    /// The newest token that the store has seen.
    pub(crate) store: Option<FencingToken>,
    /// The newest token that was written under guard.
    pub(crate) guarded: i64,
    pub(crate) observers: Observers,
    violations: Vec<Violation>,
    figures: Figures,
}

impl State {
    /// Whether the hold is certain to be held, by its own account.
    ///
    /// Not where somebody has meddled: what was deleted by hand is missed only later.
    pub(crate) fn is_certain(&self, hold: &HoldView) -> bool {
        hold.is_held() && !self.is_meddled_with(hold)
    }

    pub(crate) fn is_meddled_with(&self, hold: &HoldView) -> bool {
        self.deleted_by_hand.contains(hold.node_path())
            || self.ended_by_hand.contains(&hold.session_id())
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

    /// The contenders whose znodes stand now, in the order of their places, with their weights.
    pub(crate) fn queue(&self) -> Vec<(i64, &String, u64)> {
        let mut queue: Vec<(i64, &String, u64)> = self
            .standing
            .range(children_of(self.recipe.path))
            .filter_map(|(path, node)| Some((node.place, path, weight_at(&self.recipe, path)?)))
            .collect();
        queue.sort_unstable();
        queue
    }
}

/// Where the children of a znode are among all paths.
pub(crate) fn children_of(path: &str) -> std::ops::Range<String> {
    format!("{path}/")..format!("{path}0")
}

/// The broken promises that a look has found.
pub(crate) type Findings = Vec<(&'static str, String)>;

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
                capacities: vec![(Duration::ZERO, recipe.capacity)],
                held: BTreeMap::new(),
                granted: BTreeSet::new(),
                next_hold: 0,
                newest: BTreeMap::new(),
                standing: BTreeMap::new(),
                owners: BTreeMap::new(),
                ended: BTreeMap::new(),
                last_end: 0,
                last_created: (0, String::new()),
                deleted_by_hand: BTreeSet::new(),
                ended_by_hand: BTreeSet::new(),
                withholds: false,
                detained_until: Duration::ZERO,
                store: None,
                guarded: 0,
                observers: Observers::default(),
                violations: Vec::new(),
                figures: Figures::default(),
            }),
        }
    }

    /// What it is the account of.
    pub(crate) fn recipe(&self) -> RecipeUnderTest {
        self.state().recipe
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
        let held = std::mem::take(&mut state.held);
        let observers = std::mem::take(&mut state.observers);
        let result = (std::mem::take(&mut state.violations), state.figures);
        drop(state);
        drop((held, observers));
        result
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.state().figures);
    }

    /// Somebody has come to a hold, this very moment.
    pub(crate) fn granted(&self, who: &str, weight: u64, hold: &HoldView) -> u64 {
        self.remark(format!(
            "{who} is granted {} with token {} and weight {weight}: {:?}",
            hold.node_path(),
            hold.fencing_token(),
            hold.state(),
        ));
        let mut state = self.state();
        state.figures.grants += 1;
        state.granted.insert(hold.node_path().to_owned());
        let new = Held {
            who: who.to_owned(),
            weight,
            hold: hold.clone(),
        };
        let mut findings = Findings::new();
        if state.is_certain(hold) {
            findings.extend(exclusion::at_grant(&state, &new));
            findings.extend(order::at_grant(&state, &new));
            findings.extend(fencing::at_grant(&state, &new));
            fencing::remember(&mut state, &new);
        }
        let number = state.next_hold;
        state.next_hold += 1;
        state.held.insert(number, new);
        drop(state);
        self.report(findings);
        number
    }

    /// The owner of a hold lets go of it: from here on it does not say that it holds.
    pub(crate) fn letting_go(&self, number: u64) {
        let held = self.state().held.remove(&number);
        if let Some(held) = held {
            let state = held.hold.state();
            self.remark(format!(
                "{} lets go of {}: {state:?}",
                held.who,
                held.hold.node_path()
            ));
        }
    }

    /// A write arrives at a store that refuses old tokens.
    pub(crate) fn store(&self, weight: u64, token: FencingToken, number: u64) {
        let mut state = self.state();
        let (accepted, findings) = fencing::at_store(&mut state, weight, token, number);
        if !accepted {
            state.figures.stale_tokens += 1;
        }
        drop(state);
        self.report(findings);
    }

    /// A guarded write was refused since the holder's znode was gone.
    pub(crate) fn refused(&self, number: u64) {
        let mut state = self.state();
        state.figures.refused_writes += 1;
        let held = state.held.get(&number);
        let finding = held
            .filter(|held| state.is_certain(&held.hold))
            .map(|held| {
                let promise = "no holder's guarded write is refused";
                (promise, format!("{held:?}"))
            });
        drop(state);
        self.report(finding.into_iter().collect());
    }

    /// A release has come back with the server's word.
    pub(crate) fn released(&self, who: &str, path: &str) {
        let findings = release::at_word(&self.state(), who, path);
        self.report(findings);
    }

    /// A hold was let go of, and left a view of it.
    pub(crate) fn let_go_of(&self, who: &str, view: &HoldView) {
        let findings = release::of_views(who, view);
        self.report(findings);
    }

    /// A hold has come to its end in a time when nothing goes wrong.
    pub(crate) fn undisturbed(&self, who: &str, hold: &HoldView) {
        let findings = calm::at_end(who, hold);
        self.report(findings);
    }

    /// An attempt has failed with this.
    pub(crate) fn failed(&self, who: &str, asked: Option<&Asked>, error: &Error) {
        self.remark(format!("{who} fails: {error}"));
        let mut state = self.state();
        state.figures.errors += 1;
        let findings = errors::at_failure(&state, who, asked, error);
        drop(state);
        self.report(findings);
    }

    /// Somebody has asked for another capacity, and this came of it.
    pub(crate) fn resized(&self, who: &str, asked: &Asked, to: u64, result: Result<(), Error>) {
        self.remark(format!("{who} has resized to {to}: {result:?}"));
        let mut state = self.state();
        if result.is_ok() {
            state.figures.resized += 1;
        }
        let findings = match &result {
            Ok(()) => room::at_resize(&state, who, asked, to),
            Err(error) => errors::at_resize(&state, who, asked, error),
        };
        drop(state);
        self.report(findings);
    }

    /// How much can be held in all, now.
    pub(crate) fn capacity(&self) -> u64 {
        self.state().capacity()
    }

    /// The time by the simulation's clock.
    pub(crate) fn now(&self) -> Duration {
        self.simulation.now()
    }

    /// A leader's work goes on, this very moment.
    pub(crate) fn works(&self, number: u64, stop: StopWork) {
        let findings = work::at_step(&self.state(), number, stop);
        self.report(findings);
    }

    /// What of this still stands.
    pub(crate) fn remaining(&self, mut led: Vec<(String, SessionId)>) -> Vec<(String, SessionId)> {
        let state = self.state();
        led.retain(|(path, _)| state.standing.contains_key(path));
        led
    }

    /// What ran for leader in this session has come back, and what it has led with remains.
    pub(crate) fn remains(&self, who: &str, session: &Session, led: &(String, SessionId)) {
        self.report(work::at_end(who, session.id(), led));
    }

    /// Somebody begins to observe who leads, in this session.
    pub(crate) fn observes(&self, who: &str, session: &Session) {
        self.state().observers.begin(who, session.clone());
    }

    /// An observer was told who leads, by the token.
    pub(crate) fn told(&self, who: &str, leader: Option<FencingToken>) {
        self.remark(format!("{who} is told that {leader:?} leads"));
        let mut state = self.state();
        state.figures.news += 1;
        let findings = observers::at_news(&mut state, who, leader);
        drop(state);
        self.report(findings);
    }

    /// The observers who do not know who leads, though it has been so for this long.
    pub(crate) fn mistaken_observers(&self, patience: Duration) -> Findings {
        observers::mistaken(&self.state(), self.simulation.now(), patience)
    }

    /// The sessions of those who observe.
    pub(crate) fn observers(&self) -> Vec<String> {
        self.state().observers.names()
    }

    /// Nobody observes any more.
    pub(crate) fn end_observing(&self) {
        self.state().observers.end();
    }

    /// Somebody is about to delete this znode by hand.
    pub(crate) fn delete_by_hand(&self, path: &str) {
        let mut state = self.state();
        state.figures.deleted_by_hand += 1;
        state.deleted_by_hand.insert(path.to_owned());
    }

    /// Whether a server may have refused something for this.
    pub(crate) fn is_said(&self, refusal: &Refusal) -> bool {
        errors::is_said(&self.state(), refusal)
    }

    /// Somebody takes rights away for a while.
    pub(crate) fn withholds(&self) {
        self.state().withholds = true;
    }

    /// Somebody is about to end this session, however alive it is.
    pub(crate) fn end_by_hand(&self, session: SessionId) {
        self.state().ended_by_hand.insert(session);
    }

    /// The contenders' znodes that stand now, in the order of their places, with their owners.
    pub(crate) fn contenders(&self) -> Vec<(String, Option<SessionId>)> {
        let state = self.state();
        if !state.recipe.queues {
            let node = state.standing.get_key_value(state.recipe.path);
            return node
                .map(|(path, node)| (path.clone(), node.owner))
                .into_iter()
                .collect();
        }
        let owner = |path: &String| state.standing.get(path).and_then(|node| node.owner);
        state
            .queue()
            .into_iter()
            .map(|(_, path, _)| (path.clone(), owner(path)))
            .collect()
    }

    /// The process of this name.
    pub(crate) fn process(&self, name: &str) -> SimulatedProcess {
        self.simulation.process(name)
    }

    /// Has all who hold go on for so long.
    pub(crate) fn detain(&self, duration: Duration) {
        let until = self.now() + duration;
        let mut state = self.state();
        state.detained_until = state.detained_until.max(until);
    }

    /// Whether all who hold are to go on.
    pub(crate) fn detains(&self) -> bool {
        self.now() < self.state().detained_until
    }

    /// Who holds now, in which session.
    pub(crate) fn holders(&self) -> Vec<(String, SessionId)> {
        let state = self.state();
        let held = state.held.values();
        held.map(|held| (held.who.clone(), held.hold.session_id()))
            .collect()
    }

    /// Looks whether somebody sleeps through a turn.
    pub(crate) fn look_at_turns(&self, patience: Duration, turns: &mut turn::Turns) {
        let findings = turn::at(&self.state(), self.simulation.now(), patience, turns);
        self.report(findings);
    }

    /// Looks whether an observer has not been told who leads.
    pub(crate) fn look_at_observers(&self, patience: Duration) {
        self.report(self.mistaken_observers(patience));
    }

    /// Takes in what the ensemble has just committed.
    pub(crate) fn committed(&self, committed: &Committed) {
        let mut state = self.state();
        let mut findings = Findings::new();
        match &committed.change {
            Change::Created {
                path,
                ephemeral_owner,
                data,
            } => {
                let standing = Standing {
                    owner: *ephemeral_owner,
                    place: committed.zxid,
                    room: None,
                };
                room::at_data(&mut state, committed.at, path, data);
                state.standing.insert(path.clone(), standing);
                if *path == state.recipe.path {
                    state.owners.insert(committed.zxid, *ephemeral_owner);
                }
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
            Change::DataSet { path, data } if path == state.recipe.guarded => {
                findings.extend(fencing::at_guarded_write(
                    &mut state,
                    data,
                    committed.session,
                ));
            }
            Change::DataSet { path, data } => {
                room::at_data(&mut state, committed.at, path, data);
            }
            Change::SessionOpened { .. } => {}
        }
        if state.recipe.queues {
            room::at_change(&mut state);
        }
        if state.recipe.elects {
            observers::at_change(&mut state, committed);
        }
        drop(state);
        self.report(findings);
    }
}

/// What the contender weighs whose znode is at this path.
pub(crate) fn weight_at(recipe: &RecipeUnderTest, path: &str) -> Option<u64> {
    let name = path.strip_prefix(recipe.path)?.strip_prefix('/')?;
    recipe.weight_of(name)
}
