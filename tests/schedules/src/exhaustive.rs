//! Every request that an acquisition and a release send × every fault × every await dropped.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use zookeeper_recipes_core::{Recipe, Session};
use zookeeper_recipes_simulation::{Fault, FaultKind, Simulation, SimulationOptions};
use zookeeper_recipes_suite::{RecipeOptions, TestedRecipe, dropped_after, simulated_session};

use crate::invariants::remains;
use crate::ledger::Ledger;
use crate::place::UNDER_TEST;
use crate::run::{Report, begin_guarded, in_a_world, observed, report, settles, still_wait};

const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
const TICK: Duration = Duration::from_secs(2);

/// What came of all the runs.
#[derive(Clone, Debug, Default)]
pub struct Exhausted {
    /// How many there were.
    pub runs: u64,
    /// How many requests an acquisition and a release sent, all situations together.
    pub requests: u64,
    /// The first run in which a promise was not kept.
    pub broken: Option<(Case, Report)>,
    /// How many faults each dropped await of an undisturbed acquisition met: by the number of servers,
    /// whether somebody else held, and the number of the poll.
    pub met: BTreeMap<(usize, bool, usize), u64>,
    /// Of how many pairs of a fault and a drop one is run.
    one_in: u64,
}

impl Exhausted {
    /// True if this pair of a fault and a drop is left out. Chance decides, always in the same way: so
    /// the drops that a fault meets are others than those that the next fault meets.
    fn leaves_out(&self, case: &Case) -> bool {
        let mut hasher = DefaultHasher::new();
        format!("{case:?}").hash(&mut hasher);
        case.fault.is_some() && hasher.finish() % self.one_in != 0
    }

    /// Counts a drop of an acquisition, if it is one.
    fn count(&mut self, case: &Case) {
        let Some(poll) = case.acquire_dropped else {
            return;
        };
        let key = (case.servers, case.waits, poll);
        match case.fault {
            None => drop(self.met.insert(key, 0)),
            Some(_) => drop(self.met.entry(key).and_modify(|met| *met += 1)),
        }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// How many servers there are.
    pub servers: usize,
    /// Whether somebody else holds as the acquisition begins.
    pub waits: bool,
    /// What goes wrong with which of the requests, counted from one; and which server the client
    /// finds afterwards.
    pub fault: Option<(u64, FaultKind, usize)>,
    /// After how many polls the acquisition is dropped.
    pub acquire_dropped: Option<usize>,
    /// After how many polls the release is dropped.
    pub release_dropped: Option<usize>,
}

/// How far a run got.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    requests: u64,
    acquire_polls: usize,
    release_polls: usize,
}

/// Runs the cases of a recipe, until one breaks a promise.
///
/// Each fault meets each request once without a drop, and each await is dropped once without a fault.
/// Of the pairs of a fault and a drop, one in `one_in` runs: all of them if it is one.
pub fn exhaust(recipe: TestedRecipe, one_in: u64) -> Exhausted {
    let mut exhausted = Exhausted {
        one_in,
        ..Exhausted::default()
    };
    for servers in [1, 3] {
        for waits in [false, true] {
            let undisturbed = Case {
                servers,
                waits,
                fault: None,
                acquire_dropped: None,
                release_dropped: None,
            };
            let Some(steps) = exhaust_drops(recipe, &undisturbed, &mut exhausted) else {
                return exhausted;
            };
            exhausted.requests += steps.requests;
            for request in 1..=steps.requests {
                for kind in faults() {
                    // If the connection breaks, the next one may lead to any server.
                    let breaks = matches!(kind, FaultKind::RequestLost | FaultKind::ReplyLost);
                    for server in 0..if breaks { servers } else { 1 } {
                        let case = Case {
                            fault: Some((request, kind, server)),
                            ..undisturbed.clone()
                        };
                        if exhaust_drops(recipe, &case, &mut exhausted).is_none() {
                            return exhausted;
                        }
                    }
                }
            }
        }
    }
    exhausted
}

fn faults() -> [FaultKind; 9] {
    [
        FaultKind::RequestLost,
        FaultKind::ReplyLost,
        FaultKind::OutcomeHidden,
        // Shorter, and longer, than a client waits for an answer.
        FaultKind::RequestLate(SESSION_TIMEOUT / 6),
        FaultKind::RequestLate(SESSION_TIMEOUT / 2),
        FaultKind::ReplyLate(SESSION_TIMEOUT / 2),
        FaultKind::SessionExpired,
        // One is not long enough for the session to expire, the other is.
        FaultKind::Asleep(SESSION_TIMEOUT * 9 / 10),
        FaultKind::Asleep(SESSION_TIMEOUT * 2),
    ]
}

/// Runs a case, and then again with each of its awaits dropped. Nothing once a promise was broken.
fn exhaust_drops(recipe: TestedRecipe, case: &Case, exhausted: &mut Exhausted) -> Option<Steps> {
    let steps = take(recipe, case.clone(), exhausted)?;
    let acquire = (0..steps.acquire_polls).map(|polls| (Some(polls), None));
    let release = (0..steps.release_polls).map(|polls| (None, Some(polls)));
    for (acquire_dropped, release_dropped) in acquire.chain(release) {
        let case = Case {
            acquire_dropped,
            release_dropped,
            ..case.clone()
        };
        if !exhausted.leaves_out(&case) {
            exhausted.count(&case);
            take(recipe, case, exhausted)?;
        }
    }
    Some(steps)
}

fn take(recipe: TestedRecipe, case: Case, exhausted: &mut Exhausted) -> Option<Steps> {
    exhausted.runs += 1;
    let (found, steps) = run(recipe, &case, 0);
    if found.violations.is_empty() {
        return Some(steps);
    }
    let (found, _) = run(recipe, &case, 10_000);
    exhausted.broken = Some((case, found));
    None
}

fn run(recipe: TestedRecipe, case: &Case, trace_limit: usize) -> (Report, Steps) {
    let mut steps = Steps::default();
    let found = in_a_world(|| scenario(recipe, case, trace_limit, &mut steps));
    (found, steps)
}

async fn scenario(
    recipe: TestedRecipe,
    case: &Case,
    trace_limit: usize,
    steps: &mut Steps,
) -> Report {
    let simulation = Simulation::new(SimulationOptions {
        seed: 1,
        servers: case.servers,
        session_timeout: SESSION_TIMEOUT,
        tick: TICK,
        // With this lag, a server that lags behind has not seen the last changes.
        follower_lag: Duration::from_millis(50)..=Duration::from_millis(50),
        trace_limit,
        ..SimulationOptions::default()
    });
    let ledgers = observed(&simulation, &[(recipe, UNDER_TEST)]);
    let ledger = ledgers[0].clone();
    begin_guarded(&simulation, UNDER_TEST);
    let begun = Instant::now();
    let last = begun + SESSION_TIMEOUT * 10;
    match timeout_at(last, contend(recipe, case, &simulation, &ledger, steps)).await {
        Ok(sessions) => {
            let patience = SESSION_TIMEOUT * 4;
            settles(&ledger, patience, || {
                remains::of_contenders(&simulation, &[&ledger], true)
            })
            .await;
            for session in sessions {
                session.close().await;
            }
            settles(&ledger, patience, || remains::of_sessions(&simulation)).await;
        }
        Err(_) => still_wait(&ledger),
    }
    report(&simulation, &ledgers)
}

/// One contender holds, the disturbed contender comes, another comes behind it, the first releases.
async fn contend(
    recipe: TestedRecipe,
    case: &Case,
    simulation: &Simulation,
    ledger: &Ledger,
    steps: &mut Steps,
) -> Vec<Session> {
    let before = simulated_session(simulation, "before").await;
    let disturbed = simulated_session(simulation, "disturbed").await;
    let behind = simulated_session(simulation, "behind").await;
    if let (Some((_, FaultKind::SessionExpired, _)), Some(session)) = (case.fault, disturbed.id()) {
        ledger.end_by_hand(session);
    }

    let first = async {
        if case.waits {
            hold_before(recipe, &before, ledger).await;
        }
    };
    let second = disturb(recipe, case, simulation, &disturbed, ledger, steps);
    let third = come_behind(recipe, &behind, ledger);
    tokio::join!(biased; first, second, third);
    simulation.faults().stop();
    vec![before, disturbed, behind]
}

/// Holds as the acquisition begins, and goes.
async fn hold_before(recipe: TestedRecipe, session: &Session, ledger: &Ledger) {
    if let Ok(hold) = make(recipe, session).acquire().await {
        let number = ledger.granted("before", recipe.capacity, &hold.view());
        sleep(SESSION_TIMEOUT / 4).await;
        ledger.letting_go(number);
        let _ = hold.release().await;
    }
}

/// Acquires and releases while something goes wrong, and counts the requests and the polls.
async fn disturb(
    recipe: TestedRecipe,
    case: &Case,
    simulation: &Simulation,
    session: &Session,
    ledger: &Ledger,
    steps: &mut Steps,
) {
    let process = simulation.process("disturbed");
    sleep(Duration::from_millis(200)).await;
    let asked = requests(simulation);
    if let Some((nth, kind, server)) = case.fault {
        let fault = Fault::new(kind).of_process("disturbed").nth(nth);
        simulation.faults().inject(fault.reconnecting_to(server));
    }
    let work = async {
        let weight = recipe.capacity;
        let recipe = make(recipe, session);
        let acquired = dropped_after(
            case.acquire_dropped,
            recipe.acquire(),
            &mut steps.acquire_polls,
        );
        let Some(acquired) = acquired.await else {
            return;
        };
        match acquired {
            Ok(hold) => {
                let number = ledger.granted("disturbed", weight, &hold.view());
                sleep(Duration::from_millis(100)).await;
                ledger.letting_go(number);
                let released = dropped_after(
                    case.release_dropped,
                    hold.release(),
                    &mut steps.release_polls,
                );
                released.await;
            }
            Err(error) => ledger.failed("disturbed", None, &error),
        }
    };
    process.while_awake(work).await;
    steps.requests = requests(simulation) - asked;
}

/// Acquires behind the disturbed contender, and releases at once.
async fn come_behind(recipe: TestedRecipe, session: &Session, ledger: &Ledger) {
    let promise = "what nobody disturbs goes well";
    sleep(SESSION_TIMEOUT / 8).await;
    match make(recipe, session).acquire().await {
        Ok(hold) => {
            let number = ledger.granted("behind", recipe.capacity, &hold.view());
            ledger.letting_go(number);
            if let Err(error) = hold.release().await {
                ledger.violated(promise, error.to_string());
            }
        }
        Err(error) => ledger.violated(promise, error.to_string()),
    }
}

fn make(recipe: TestedRecipe, session: &Session) -> Box<dyn Recipe> {
    recipe
        .make(
            session,
            UNDER_TEST.path,
            recipe.capacity,
            RecipeOptions::default(),
        )
        .expect("the options are good")
}

/// How many requests the disturbed process has sent.
fn requests(simulation: &Simulation) -> u64 {
    simulation.counters().requests_of("disturbed")
}
