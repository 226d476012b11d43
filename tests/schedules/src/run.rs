//! One seed, from its beginning to its end.

use std::cell::RefCell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::{JoinAll, join_all};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use zookeeper_recipes_core::{CreateMode, Error, Session};
use zookeeper_recipes_simulation::{SimulatedProcess, Simulation, Trace};
use zookeeper_recipes_suite::{LOCK, TestedRecipe};

use crate::contender::{draw, make};
use crate::faults_met::FaultsMet;
use crate::figures::Figures;
use crate::findings::{Findings, Violation};
use crate::invariants::turn::{self, Turns};
use crate::invariants::{self, remains};
use crate::lasting_faults::LastingFaults;
use crate::ledger::Ledger;
use crate::place::{BESIDE, Place, UNDER_TEST};
use crate::progress::{nobody_is_barred, progress};
use crate::schedule::Schedule;
use crate::setting::Setting;
use crate::{data_loss, interference, observer, pairs, process, resizing};

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The promises that were not kept.
    pub violations: Vec<Violation>,
    /// The trace. Empty if it was not to be recorded.
    pub trace: Trace,
    /// What has happened, counted.
    pub figures: Figures,
    /// Which faults met which steps.
    pub met: FaultsMet,
}

/// How a seed's run differs from the usual one.
#[derive(Clone, Debug, Default)]
pub struct Variant {
    /// Whether faults last for good: of a minority of the servers, and of processes beside those
    /// that have to make progress.
    pub never_heals: bool,
}

impl Variant {
    /// The schedule of a seed, changed as this variant asks.
    pub(crate) fn schedule(
        &self,
        recipe: &TestedRecipe,
        seed: u64,
        trace_limit: usize,
    ) -> Schedule {
        let mut schedule = Schedule::draw(recipe, seed, trace_limit);
        if self.never_heals {
            schedule.never_heal(seed);
        }
        schedule
    }
}

/// Runs one seed of a recipe.
pub(crate) fn run(
    recipe: TestedRecipe,
    seed: u64,
    trace_limit: usize,
    variant: &Variant,
) -> Report {
    in_a_world(|| async move {
        let schedule = variant.schedule(&recipe, seed, trace_limit);
        scenario(recipe, schedule, Rng::with_seed(!seed)).await
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

async fn scenario(recipe: TestedRecipe, schedule: Schedule, mut rng: Rng) -> Report {
    let simulation = Simulation::new(schedule.options.clone());
    let ledgers = observed(&simulation, &[(recipe, UNDER_TEST), (LOCK, BESIDE)]);
    let ledger = ledgers[0].clone();
    simulation.on_fault(move |fault| ledger.met(fault));
    begin(&simulation, recipe, schedule.first_number);
    let setting = &Setting::new(&simulation, schedule, &ledgers);
    let schedule = &setting.schedule;
    let contends =
        async |process: SimulatedProcess, rng| process::run(setting, &process, rng).await;
    let names = (0..schedule.processes).map(|number| format!("p{number}"));
    let processes = in_processes(&simulation, names, &mut rng, &contends);
    let observes =
        async |process: SimulatedProcess, rng| observer::run(setting, &process, rng).await;
    let names = (0..schedule.observers).map(|number| format!("observer{number}"));
    let observers = in_processes(&simulation, names, &mut rng, &observes);
    let hit = schedule.lasting.as_ref();
    let hit = (0..hit.map_or(0, LastingFaults::processes)).map(LastingFaults::process);
    let hit = in_processes(&simulation, hit, &mut rng, &contends);
    let meddling = meddle(setting, rng);
    let sessions = setting.within_limits(async {
        tokio::select! {
            biased;
            sessions = contend(setting, meddling, processes) => sessions,
            // Without any, there is nothing to wait for.
            _ = observers, if schedule.observers > 0 => Vec::new(),
            // They need not come to an end.
            () = async { drop(hit.await); pending().await } => Vec::new(),
            () = nobody_is_barred(setting), if schedule.lasting.is_some() => Vec::new(),
        }
    });
    let sessions = sessions.await.unwrap_or_default();
    setting.ledger.end_observing();
    if setting.ledger.is_clean() && schedule.lasting.is_none() {
        end(setting, sessions).await;
    }
    report(&simulation, &ledgers)
}

/// Runs this in each process of these names, while it is awake. Their seeds are drawn at once.
pub(crate) fn in_processes<'a, T, N, R>(
    simulation: &'a Simulation,
    names: N,
    rng: &mut Rng,
    run: &'a R,
) -> JoinAll<impl Future<Output = T> + use<'a, T, N, R>>
where
    N: Iterator<Item = String>,
    R: AsyncFn(SimulatedProcess, Rng) -> T,
{
    join_all(names.map(|name| {
        let rng = rng.fork();
        async move {
            let process = simulation.process(&name);
            process.while_awake(run(process.clone(), rng)).await
        }
    }))
}

/// Has things go wrong until the quiet begins.
async fn meddle(setting: &Setting, mut rng: Rng) {
    let others = interference::run(setting, rng.fork());
    let pairs = pairs::run(setting, rng.fork());
    let loss = data_loss::in_setting(setting, rng.fork());
    let trouble = async {
        tokio::join!(biased; others, pairs, setting.lasting_faults());
        setting.calms_down();
    };
    // What comes of a loss of data is looked at in the quiet, too.
    tokio::join!(biased; trouble, loss);
}

/// All contend, and come through in time. The call returns their sessions, or none if some still
/// wait.
async fn contend(
    setting: &Setting,
    meddling: impl Future<Output = ()>,
    processes: impl Future<Output = Vec<Session>>,
) -> Vec<Session> {
    let schedule = &setting.schedule;
    let last = setting.quiet_from + schedule.mends_within() + schedule.comes_through_within();
    let all = async { tokio::join!(biased; meddling, processes).1 };
    match timeout_at(last, all).await {
        Ok(sessions) if schedule.lasting.is_some() => {
            progress(setting, &sessions).await;
            leave_nothing(setting).await;
            sessions
        }
        Ok(sessions) => {
            quiet(setting, &sessions).await;
            sessions
        }
        Err(_) => {
            still_wait(&setting.ledger);
            Vec::new()
        }
    }
}

/// Reports that some have not come through.
pub(crate) fn still_wait(ledger: &Ledger) {
    let contenders = ledger.contenders();
    let text = format!("some still wait; the queue is {contenders:?}");
    ledger.violated("all come through once things have ceased to go wrong", text);
}

/// No contender stays, of the processes that faults hit for good neither. A process that gets no lease,
/// or loses each session, comes back for ever.
async fn leave_nothing(setting: &Setting) {
    let ledger = &*setting.ledger;
    if ledger.is_clean() {
        let before = ledger.places();
        settles(ledger, setting.schedule.comes_through_within(), || {
            let mut left = ledger.places();
            left.retain(|place| before.contains(place));
            match left.is_empty() {
                true => Findings::new(),
                false => vec![("no znode remains", format!("{left:?}"))],
            }
        })
        .await;
    }
}

/// Ledgers that see all that the simulation commits.
pub(crate) fn observed(
    simulation: &Simulation,
    recipes: &[(TestedRecipe, Place)],
) -> Vec<Arc<Ledger>> {
    let ledgers: Vec<_> = recipes
        .iter()
        .map(|(recipe, place)| Arc::new(Ledger::new(simulation.clone(), *recipe, *place)))
        .collect();
    let observers = ledgers.clone();
    simulation.on_commit(move |committed| {
        for observer in &observers {
            observer.committed(committed);
        }
    });
    ledgers
}

/// What was found, and the end of the ledgers.
pub(crate) fn report(simulation: &Simulation, ledgers: &[Arc<Ledger>]) -> Report {
    simulation.on_commit(|_| ());
    simulation.on_fault(|_| ());
    let mut report = Report::default();
    for ledger in ledgers {
        let (violations, figures) = ledger.finish();
        report.violations.extend(violations);
        report.figures += figures;
        report.met += ledger.take_met();
    }
    report.trace = simulation.trace();
    report
}

/// Creates what guarded writes are for.
pub(crate) fn begin_guarded(simulation: &Simulation, place: Place) {
    let made = simulation
        .administrator()
        .create(place.guarded, b"", CreateMode::Persistent);
    assert!(made.is_ok(), "an empty tree takes it");
}

fn begin(simulation: &Simulation, recipe: TestedRecipe, first_number: i32) {
    begin_guarded(simulation, UNDER_TEST);
    begin_guarded(simulation, BESIDE);
    let administrator = simulation.administrator();
    if first_number != 0 && recipe.queues {
        let Place { path, .. } = UNDER_TEST;
        let (parent, _) = path.rsplit_once('/').unwrap_or_default();
        let data = recipe.resizes.then(|| recipe.capacity.to_string());
        let data = data.unwrap_or_default();
        let made = administrator
            .create(parent, b"", CreateMode::Persistent)
            .and_then(|_| administrator.create(path, data.as_bytes(), CreateMode::Persistent))
            .and_then(|_| administrator.set_create_counter(path, first_number));
        assert!(made.is_ok(), "an empty tree takes it");
    }
}

/// All contenders are done: nothing may remain, and each observer knows that.
async fn quiet(setting: &Setting, sessions: &[Session]) {
    let (ledger, schedule) = (&*setting.ledger, &setting.schedule);
    let patience = schedule.waits_at_most();
    let is_calm = !schedule.breaks_connections_at_watches();
    // Until then a request of a contender that has gone since may still be under way.
    sleep_until(setting.quiet_from + schedule.mends_within()).await;
    settles(ledger, patience, || {
        let ledgers = [ledger, &setting.beside[0]];
        let mut findings = remains::of_contenders(&setting.simulation, &ledgers, is_calm);
        findings.extend(ledger.mistaken_observers(Duration::ZERO));
        findings
    })
    .await;
    if is_calm && setting.recipe.queues && ledger.is_clean() {
        calm(setting, sessions).await;
    }
}

/// Everything must be to be had, and in the end no session may remain.
async fn end(setting: &Setting, sessions: Vec<Session>) {
    let (ledger, schedule) = (&*setting.ledger, &setting.schedule);
    for session in &sessions {
        if !ledger.is_clean() {
            break;
        }
        // A server that lags behind may still show the one before.
        sleep(Duration::from_secs(1)).await;
        let capacity = ledger.capacity();
        let weights = setting.recipe.weights.iter();
        let weight = weights.filter(|it| **it <= capacity).max().unwrap_or(&1);
        let mut rng = Rng::with_seed(0);
        let recipe = make(setting, session, *weight, capacity, &mut rng);
        let mut tried = recipe.try_acquire().await;
        // A session that has nothing at the server learns only now that the server gave it up.
        let forgets = schedule.options.forgets_sessions || schedule.forgets;
        if forgets && matches!(tried, Err(Error::SessionOver { .. })) {
            // What it created goes with the session that the server has put it into.
            sleep(Duration::from_secs(1)).await;
            tried = recipe.try_acquire().await;
        }
        match tried {
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
    let patience = schedule.waits_at_most();
    settles(ledger, patience, || {
        remains::of_sessions(&setting.simulation)
    })
    .await;
}

/// While nothing goes wrong, some hold for long: the others hold as soon as they can beside them.
async fn calm(setting: &Setting, sessions: &[Session]) {
    let (ledger, schedule) = (&*setting.ledger, &setting.schedule);
    let mut rng = Rng::with_seed(schedule.options.seed);
    let contenders = sessions.iter().flat_map(|session| [session, session]);
    let all = join_all(contenders.enumerate().map(|(number, session)| {
        let mut rng = rng.fork();
        async move {
            let who = format!("calm.{number}");
            sleep(Duration::from_millis(rng.u64(0..=300))).await;
            let (recipe, asked) = draw(setting, session, &mut rng);
            match recipe.acquire().await {
                Ok(hold) => {
                    let granted = ledger.granted(&who, asked.weight, &hold.view());
                    sleep(Duration::from_millis(rng.u64(0..=6_000))).await;
                    ledger.report(invariants::calm::at_end(&who, &hold.view()));
                    ledger.letting_go(granted);
                    drop(hold.release().await);
                }
                Err(error) => ledger.failed(&who, Some(&asked), &error),
            }
        }
    }));
    let resizing = async {
        if let (Some(session), true) = (sessions.first(), schedule.resizes) {
            resizing::run(setting, session, rng.fork()).await;
        }
        pending::<()>().await;
    };
    let watch = async {
        let mut turns = Turns::new();
        while ledger.is_clean() {
            let patience = schedule.hands_on_within();
            ledger.look(|state| turn::at(state, ledger.now(), patience, &mut turns));
            ledger.report(ledger.mistaken_observers(patience));
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        biased;
        _ = all => {}
        () = resizing => {}
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
