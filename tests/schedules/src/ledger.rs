//! What everybody says they hold, beside what the ensemble has committed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zookeeper_recipes_core::{
    Error, FencingToken, HoldView, Refusal, Session, SessionEnd, SessionId,
};
use zookeeper_recipes_simulation::{Change, Committed, FaultMet, Simulation};
use zookeeper_recipes_suite::TestedRecipe;
use zookeeper_recipes_testkit::history::History;

use crate::faults_met::FaultsMet;
use crate::figures::Figures;
use crate::findings::{Findings, Violation, found};
use crate::invariants::errors::Asked;
use crate::invariants::{anew, errors, guarded, loss, observers, room, succession, znode};
use crate::place::Place;
use crate::state::State;
use crate::steps;

/// The account of one run.
pub(crate) struct Ledger {
    simulation: Simulation,
    state: Mutex<State>,
}

impl Ledger {
    pub(crate) fn new(simulation: Simulation, recipe: TestedRecipe, place: Place) -> Ledger {
        Ledger {
            simulation,
            state: Mutex::new(State::new(recipe, place)),
        }
    }

    /// What it is the account of.
    pub(crate) fn recipe(&self) -> TestedRecipe {
        self.state().recipe
    }

    /// Where that recipe is in the tree.
    pub(crate) fn place(&self) -> Place {
        self.state().place
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports what this finds in the account.
    pub(crate) fn look(&self, look: impl FnOnce(&State) -> Findings) {
        let findings = look(&self.state());
        self.report(findings);
    }

    pub(crate) fn report(&self, findings: Findings) {
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

    /// A fault has met a client.
    pub(crate) fn met(&self, met: &FaultMet) {
        let mut state = self.state();
        for step in steps::of(&state, met) {
            state.met.add(met.fault, step, 1);
        }
    }

    /// Takes out which faults met which steps.
    pub(crate) fn take_met(&self) -> FaultsMet {
        std::mem::take(&mut self.state().met)
    }

    pub(crate) fn finish(&self) -> (Vec<Violation>, Figures) {
        let mut state = self.state();
        let history = std::mem::replace(&mut state.history, History::new(0));
        let observers = std::mem::take(&mut state.observers);
        let result = (std::mem::take(&mut state.violations), state.figures);
        drop(state);
        drop((history, observers));
        result
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.state().figures);
    }

    /// A call has come through in this time, for which it has the bound.
    pub(crate) fn count_share(&self, took: Duration, bound: Duration) {
        let percent = (took.as_secs_f64() * 100.0 / bound.as_secs_f64()) as u64;
        self.count(|figures| figures.longest_share = figures.longest_share.max(percent));
    }

    /// A contender holds from this very moment.
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
        let (number, violations) = state.history.granted(who, weight, hold);
        let mut findings = found(violations);
        anew::at_grant(&mut state, self.simulation.now(), number, hold);
        if state.history.is_certain(hold) {
            findings.extend(znode::at_grant(&state, who, hold));
        }
        if state.recipe.elects {
            let queue = state.queue();
            findings.extend(succession::at_grant(&state.succession, &queue, who, hold));
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
                held.hold.node_path()
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
        self.report(found(violation));
    }

    /// True if the znode of guarded writes had gone with the data of the servers, at some time since.
    pub(crate) fn was_unguarded(&self, path: &str, since: Duration) -> bool {
        guarded::was_missing(&self.state(), path, since)
    }

    /// A guarded write was refused since the holder's znode was gone.
    pub(crate) fn refused(&self, number: u64) {
        let mut state = self.state();
        state.figures.refused_writes += 1;
        let violation = state.history.guarded_write_refused(number);
        drop(state);
        self.report(found(violation));
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

    /// A contender has asked for another capacity, with this result.
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

    /// Which of these znodes still exist, and have not come back with older data of the servers.
    pub(crate) fn remaining(&self, mut led: Vec<(String, SessionId)>) -> Vec<(String, SessionId)> {
        let state = self.state();
        led.retain(|(path, _)| state.standing.contains_key(path) && !state.ghosts.contains(path));
        led
    }

    /// An observer begins to observe who leads, in this session.
    pub(crate) fn observes(&self, who: &str, session: &Session) {
        self.state().observers.begin(who, session.clone());
    }

    /// An observer was notified of who leads, by the token.
    pub(crate) fn told(&self, who: &str, leader: Option<FencingToken>) {
        self.remark(format!("{who} is notified that {leader:?} leads"));
        let mut state = self.state();
        state.figures.news += 1;
        let findings = observers::at_news(&mut state.observers, who, leader);
        drop(state);
        self.report(findings);
    }

    /// The observers that do not know the leader, though it has led for this long.
    pub(crate) fn mistaken_observers(&self, patience: Duration) -> Findings {
        observers::mistaken(&self.state().observers, self.simulation.now(), patience)
    }

    /// The sessions of the observers.
    pub(crate) fn observers(&self) -> Vec<String> {
        self.state().observers.names()
    }

    /// The observers end.
    pub(crate) fn end_observing(&self) {
        self.state().observers.end();
    }

    /// Somebody is about to delete this znode by hand.
    pub(crate) fn delete_by_hand(&self, path: &str) {
        let mut state = self.state();
        state.figures.deleted_by_hand += 1;
        state.history.disregard_znode(path);
    }

    /// Somebody is about to delete a znode that has come back with older data of the servers.
    pub(crate) fn evict(&self, path: &str) {
        self.state().history.disregard_znode(path);
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
        self.state().history.disregard_session(session);
    }

    /// The contenders' znodes, and the transactions that created them or the znodes that they replaced.
    pub(crate) fn places(&self) -> Vec<(String, i64)> {
        let contenders = self.contenders().into_iter();
        let state = self.state();
        let place = |path: String| state.standing.get(&path).map(|node| (path, node.place));
        contenders.filter_map(|(path, _)| place(path)).collect()
    }

    /// The contenders' znodes that exist now, in the order of their places, with their owners.
    pub(crate) fn contenders(&self) -> Vec<(String, Option<SessionId>)> {
        let state = self.state();
        if !state.recipe.queues {
            let node = state.standing.get_key_value(state.place.path);
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

    /// Makes all holders keep their holds for so long.
    pub(crate) fn detain(&self, duration: Duration) {
        let until = self.now() + duration;
        let mut state = self.state();
        state.detained_until = state.detained_until.max(until);
    }

    /// Whether all holders are to keep their holds.
    pub(crate) fn detains(&self) -> bool {
        self.now() < self.state().detained_until
    }

    /// Who holds now, in which session.
    pub(crate) fn holders(&self) -> Vec<(String, SessionId)> {
        let state = self.state();
        let held = state.history.held();
        held.map(|(_, held)| (held.who.clone(), held.hold.session_id()))
            .collect()
    }

    /// The holds whose znodes have gone with the data of the servers are lost by this time.
    pub(crate) fn expect_losses(&self, by: Duration) {
        self.state().lost_by = Some(by);
    }

    /// True if the owner of this hold has to know that it is lost before another can have it.
    pub(crate) fn is_certain(&self, hold: &HoldView) -> bool {
        self.state().history.is_certain(hold)
    }

    /// True if the hold's znode has gone with the data of the servers.
    pub(crate) fn is_gone(&self, hold: &HoldView) -> bool {
        self.state().history.is_gone(hold)
    }

    /// True if the servers have lost data.
    pub(crate) fn has_lost_data(&self) -> bool {
        self.state().lost_by.is_some()
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
                room::at_data(&mut state, committed.at, path, data);
                state.created(path, *ephemeral_owner, committed.zxid);
                guarded::at_creation(&mut state, committed.at, path);
            }
            Change::Deleted { path } => {
                anew::at_deletion(&mut state, committed.at, path, committed.session);
                state.deleted(path, committed.zxid);
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
            Change::DataSet { path, data } if path == state.place.guarded => {
                findings.extend(guarded::at_commit(&mut state, data));
            }
            Change::DataSet { path, data } => {
                room::at_data(&mut state, committed.at, path, data);
            }
            Change::DataReplaced { data } => anew::at_loss(&mut state, committed.at, data),
            Change::SessionOpened { session } => drop(state.opened.insert(*session)),
        }
        if state.recipe.elects {
            let leader = state.queue().first().map(|(place, _, _)| *place);
            observers::at_change(&mut state.observers, leader, committed);
            let directory = state.place.path;
            succession::at_change(&mut state.succession, directory, leader, committed);
        }
        drop(state);
        self.report(findings);
    }
}
