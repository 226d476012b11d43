//! One seed, from its beginning to its end.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use zookeeper_recipes_core::{CreateMode, Session};
use zookeeper_recipes_testkit::simulation::{Simulation, Trace};

use crate::contender::Setting;
use crate::invariants::remains;
use crate::invariants::turn::Turns;
use crate::ledger::{Figures, Findings, GUARDED, Ledger, Violation};
use crate::recipe::{PATH, RecipeUnderTest};
use crate::schedule::Schedule;
use crate::{interference, process};

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The promises that were not kept.
    pub violations: Vec<Violation>,
    /// What has happened, where it was to be recorded.
    pub trace: Trace,
    /// What has happened, counted.
    pub figures: Figures,
}

/// Runs one seed. With a `trace_limit` that many of the newest lines of its trace are kept.
///
/// The same seed gives the same run.
pub fn run(recipe: RecipeUnderTest, seed: u64, trace_limit: usize) -> Report {
    in_a_world(|| async move {
        let schedule = Schedule::draw(&recipe, seed, trace_limit);
        scenario(recipe, &schedule, Rng::with_seed(!seed)).await
    })
}

/// Runs something on a runtime of its own with a paused clock. A panic in any of its tasks is a
/// violation.
pub(crate) fn in_a_world<F: Future<Output = Report>>(world: impl FnOnce() -> F) -> Report {
    thread_local! {
        static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
        static RUNNING: RefCell<bool> = const { RefCell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if RUNNING.with_borrow(|running| *running) {
                PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            } else {
                usual(panic);
            }
        }));
    });
    RUNNING.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without input and output can be had");
        runtime.block_on(world())
    }));
    RUNNING.set(false);
    let mut report = result.unwrap_or_default();
    for text in PANICS.take() {
        report.violations.push(Violation {
            at: Duration::ZERO,
            promise: "nothing panics",
            text,
        });
    }
    report
}

async fn scenario(recipe: RecipeUnderTest, schedule: &Schedule, mut rng: Rng) -> Report {
    let simulation = Simulation::new(schedule.options.clone());
    let ledger = observed(&simulation, recipe);
    begin(&simulation, recipe, schedule);
    let setting = Setting {
        recipe,
        ledger: ledger.clone(),
        quiet_from: Instant::now() + schedule.troubled,
        handovers: schedule.handovers,
        sleeps: schedule.rates.asleep > 0.0,
        longest_stay: schedule.options.session_timeout * 2,
    };
    simulation.faults().set_rates(schedule.rates.clone());
    let processes = join_all((0..schedule.processes).map(|number| {
        let name = format!("p{number}");
        let (simulation, setting, rng) = (&simulation, &setting, rng.fork());
        async move {
            let process = simulation.process(&name);
            let ensemble = process.ensemble();
            let run = process::run(setting, &name, ensemble, schedule.contenders, rng);
            process.while_awake(run).await
        }
    }));
    let meddling = async {
        interference::run(&simulation, &setting, schedule.interference, rng.fork()).await;
        simulation.faults().stop();
        simulation.remark("from here on all is quiet");
    };
    let last = setting.quiet_from + schedule.mends_within() + schedule.waits_at_most();
    let all = async { tokio::join!(biased; meddling, processes).1 };
    match timeout_at(last, all).await {
        Ok(sessions) => {
            end(&simulation, &setting, schedule, sessions).await;
        }
        Err(_) => {
            let contenders = ledger.contenders();
            let text = format!("some still wait; the queue is {contenders:?}");
            ledger.violated("all come through once things have ceased to go wrong", text);
        }
    }
    report(&simulation, &ledger)
}

/// A ledger that is told of all that the simulation commits.
pub(crate) fn observed(simulation: &Simulation, recipe: RecipeUnderTest) -> Arc<Ledger> {
    let ledger = Arc::new(Ledger::new(simulation.clone(), recipe));
    let observer = ledger.clone();
    simulation.on_commit(move |committed| observer.committed(committed));
    ledger
}

/// What was found, and the end of the ledger.
pub(crate) fn report(simulation: &Simulation, ledger: &Ledger) -> Report {
    simulation.on_commit(|_| ());
    let (violations, figures) = ledger.finish();
    Report {
        violations,
        trace: simulation.trace(),
        figures,
    }
}

fn begin(simulation: &Simulation, recipe: RecipeUnderTest, schedule: &Schedule) {
    let administrator = simulation.administrator();
    let made = administrator.create(GUARDED, b"", CreateMode::Persistent);
    assert!(made.is_ok(), "an empty tree takes it");
    if schedule.first_number != 0 && recipe.queues {
        let (parent, _) = PATH.rsplit_once('/').unwrap_or_default();
        let data = if recipe.name == "semaphore" {
            recipe.capacity.to_string()
        } else {
            String::new()
        };
        let made = administrator
            .create(parent, b"", CreateMode::Persistent)
            .and_then(|_| administrator.create(PATH, data.as_bytes(), CreateMode::Persistent))
            .and_then(|_| administrator.set_create_counter(PATH, schedule.first_number));
        assert!(made.is_ok(), "an empty tree takes it");
    }
}

/// All have come through: nothing may remain, and everything must be to be had.
async fn end(
    simulation: &Simulation,
    setting: &Setting,
    schedule: &Schedule,
    sessions: Vec<Session>,
) {
    let ledger = &*setting.ledger;
    let patience = schedule.waits_at_most();
    // Until then a request may still be under way of somebody who has gone since.
    sleep_until(setting.quiet_from + schedule.mends_within()).await;
    settles(ledger, patience, || {
        remains::of_contenders(simulation, ledger)
    })
    .await;
    if setting.recipe.queues && ledger.is_clean() {
        calm(setting, schedule, &sessions).await;
    }
    for session in &sessions {
        if !ledger.is_clean() {
            break;
        }
        // A server that lags behind may still show the one before.
        sleep(Duration::from_secs(1)).await;
        let weights = setting.recipe.weights;
        let weight = *weights.iter().max().unwrap_or(&1);
        let mut rng = Rng::with_seed(0);
        let recipe = crate::contender::make(setting, session, weight, &mut rng);
        match recipe.try_acquire().await {
            Ok(Some(hold)) => drop(hold.release().await),
            other => {
                let text = format!("{other:?}");
                ledger.violated("what nobody holds can be had at once", text);
            }
        }
    }
    for session in sessions {
        session.close().await;
    }
    settles(ledger, patience, || remains::of_sessions(simulation)).await;
}

/// While nothing goes wrong, some hold for long: the others hold as soon as they can beside them.
async fn calm(setting: &Setting, schedule: &Schedule, sessions: &[Session]) {
    let mut rng = Rng::with_seed(schedule.options.seed);
    let contenders = sessions.iter().flat_map(|session| [session, session]);
    let all = join_all(contenders.enumerate().map(|(number, session)| {
        let mut rng = rng.fork();
        async move {
            let ledger = &*setting.ledger;
            let weight = *rng.choice(setting.recipe.weights).unwrap_or(&1);
            let recipe = crate::contender::make(setting, session, weight, &mut rng);
            sleep(Duration::from_millis(rng.u64(0..=300))).await;
            match recipe.acquire().await {
                Ok(hold) => {
                    let granted = ledger.granted(&format!("calm.{number}"), weight, &hold);
                    sleep(Duration::from_millis(rng.u64(0..=6_000))).await;
                    ledger.letting_go(granted);
                    drop(hold.release().await);
                }
                Err(error) => ledger.failed("calm", &error),
            }
        }
    }));
    let watch = async {
        let mut turns = Turns::new();
        while setting.ledger.is_clean() {
            let patience = schedule.hands_on_within();
            setting.ledger.look_at_turns(patience, &mut turns);
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        biased;
        _ = all => {}
        () = watch => {}
    }
}

/// Waits until nothing is found any more, and reports what is found to the last.
pub(crate) async fn settles(ledger: &Ledger, patience: Duration, look: impl Fn() -> Findings) {
    let last = Instant::now() + patience;
    loop {
        let findings = look();
        if findings.is_empty() {
            return;
        }
        if Instant::now() >= last {
            for (promise, text) in findings {
                ledger.violated(promise, text);
            }
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
}
