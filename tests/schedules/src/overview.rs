//! An overview: each look agrees with what the ensemble has committed.

mod referee;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use zookeeper_recipes_core::{CreateMode, Error, Hold, Refusal, Session};
use zookeeper_recipes_overview::{LiveOverview, Overview};
use zookeeper_recipes_simulation::{Committed, FaultMet, SimulatedProcess};
use zookeeper_recipes_suite::{LOCK, WRITER, downgrade, resize};

use crate::run::{Report, Variant, in_processes};
use crate::setting::Setting;
use crate::{process, trial};
use referee::{BASE, QUEUES, Referee, SEMAPHORE_PATH, ring};

/// How long a live overview pauses between two looks.
const PAUSE: Duration = Duration::from_millis(500);

struct Judge {
    trial: Arc<Setting>,
    referee: Mutex<Referee>,
    /// When a leader was cut off from the others. Its clients can read what is old.
    isolations: Mutex<Vec<Instant>>,
    began: Instant,
    live: Mutex<Option<watch::Receiver<LiveOverview>>>,
    /// Whether all acquire in one order, so that nobody waits in a circle.
    in_order: bool,
    resizes: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Judge {
    fn committed(&self, committed: &Committed) {
        self.trial.ledger.committed(committed);
        locked(&self.referee).committed(committed);
    }

    fn met(&self, met: &FaultMet) {
        if met.fault == "leader isolated" {
            locked(&self.isolations).push(Instant::now());
        }
    }

    /// Compares a look of this time with what was committed.
    fn looked(&self, who: &str, begun: Instant, overview: &Overview) {
        let (trial, ended) = (&self.trial, Instant::now());
        let mut isolations = locked(&self.isolations).clone();
        isolations
            .retain(|at| begun.saturating_duration_since(*at) < trial.schedule.mends_within());
        let oldest = isolations.into_iter().chain([begun]).min();
        let since_began = |at: Instant| at.saturating_duration_since(self.began);
        let window = since_began(oldest.unwrap_or(begun))..=since_began(ended);
        let circles = overview.circles().len() as u64;
        trial.count(|figures| {
            figures.looks += 1;
            figures.circles += circles;
        });
        let referee = locked(&self.referee);
        for (promise, text) in referee.judge(window, overview) {
            trial.violated(promise, format!("{who}: {text}"));
        }
    }

    fn failed(&self, who: &str, error: &Error, is_look: bool) {
        let has_reason = !is_look || matches!(error, Error::NoSession { .. });
        self.trial.failed(who, error, has_reason);
    }
}

/// Runs one seed.
pub(crate) fn run(seed: u64, trace_limit: usize, variant: &Variant) -> Report {
    trial::run((seed, trace_limit), variant, |trial, mut rng| async move {
        let judge = Arc::new(Judge {
            trial,
            referee: Mutex::default(),
            isolations: Mutex::default(),
            began: Instant::now(),
            live: Mutex::default(),
            in_order: rng.u8(..4) == 0,
            resizes: rng.u8(..3) == 0,
        });
        let simulation = &judge.trial.simulation;
        let (observer, met) = (judge.clone(), judge.clone());
        simulation.on_commit(move |committed| observer.committed(committed));
        simulation.on_fault(move |fault| met.met(fault));
        participate(&judge, rng).await;
    })
}

async fn participate(judge: &Judge, mut rng: Rng) {
    let trial = &judge.trial;
    let viewers = ["looks".to_owned(), "watches".to_owned()].into_iter();
    let views = async |process: SimulatedProcess, rng| match process.name() {
        "looks" => look_again(judge, &process, rng).await,
        _ => follow(judge, &process).await,
    };
    let viewers = in_processes(&trial.simulation, viewers, &mut rng, &views);
    let names = (0..trial.schedule.processes).map(|number| format!("p{number}"));
    let contends = async |process: SimulatedProcess, rng| contend(judge, process.name(), rng).await;
    let processes = in_processes(&trial.simulation, names, &mut rng, &contends);
    let meddling = trial.meddle(BASE, rng.fork(), || ());
    let others = make_others(judge, rng.fork());
    let all = async {
        let promise = "all come to an end once things have ceased to go wrong";
        let done = async { tokio::join!(biased; meddling, others, processes).2 };
        let Some(sessions) = trial.in_time(promise, done).await else {
            return Vec::new();
        };
        sleep_until(trial.quiet_from + trial.schedule.mends_within()).await;
        plant(judge, &sessions).await;
        sessions
    };
    let sessions = tokio::select! {
        biased;
        sessions = all => sessions,
        _ = viewers => Vec::new(),
    };
    // The task of the live overview ends.
    *locked(&judge.live) = None;
    trial.close(sessions).await;
}

/// Looks, again and again, for good.
async fn look_again(judge: &Judge, process: &SimulatedProcess, mut rng: Rng) {
    let session = process::open(&judge.trial, process).await;
    loop {
        let begun = Instant::now();
        match Overview::below(&session, BASE).await {
            Ok(overview) => judge.looked(process.name(), begun, &overview),
            Err(error) => judge.failed(process.name(), &error, true),
        }
        sleep(Duration::from_millis(rng.u64(0..=1_000))).await;
    }
}

/// Has a live overview, for good.
async fn follow(judge: &Judge, process: &SimulatedProcess) {
    let session = process::open(&judge.trial, process).await;
    let mut begun = Instant::now();
    let watched = Overview::watch(&session, "/", PAUSE).await;
    let mut live = watched.expect("the server refuses nothing");
    *locked(&judge.live) = Some(live.clone());
    loop {
        let shown = live.borrow_and_update().clone();
        if let Some(error) = &shown.error {
            judge.failed(process.name(), error, true);
        } else {
            judge.looked(process.name(), begun, &shown.overview);
            begun = shown.looked_at;
        }
        if live.changed().await.is_err() {
            return judge
                .trial
                .violated("a live overview stays", process.name().to_owned());
        }
    }
}

/// Contends in one session after the other, until all is quiet.
async fn contend(judge: &Judge, who: &str, mut rng: Rng) -> Session {
    let round = async |session: &Session, who: &str, rng: &mut Rng| {
        hold_some(judge, session, who, rng).await;
    };
    let done = judge
        .trial
        .in_sessions(who, &mut rng, Session::clone, round);
    done.await.0
}

/// Acquires some of the queues, one after the other, and releases what it got.
async fn hold_some(judge: &Judge, session: &Session, who: &str, rng: &mut Rng) {
    let trial = &judge.trial;
    trial.pause(rng, 600).await;
    if judge.resizes && rng.u8(..6) == 0 {
        // A semaphore that is not there yet, or that is too late, is none of this judge's.
        if resize(session, SEMAPHORE_PATH, rng.u64(1..=5))
            .await
            .is_ok()
        {
            trial.count(|figures| figures.resized += 1);
        }
    }
    let number = rng.usize(1..=3);
    let mut wanted = rng.choose_multiple(0..QUEUES.len(), number);
    if judge.in_order {
        wanted.sort_unstable();
    }
    let mut holds = Vec::new();
    for (path, recipe) in wanted.into_iter().map(|place| QUEUES[place]) {
        let capacity = locked(&judge.referee)
            .capacity(path)
            .unwrap_or(recipe.capacity);
        let weight = rng.choice(recipe.weights).map_or(1, |weight| *weight);
        let made = recipe.of(capacity);
        let made = made.at(session, path, weight.min(capacity));
        let patience = Duration::from_millis(rng.u64(0..=6_000));
        match timeout(patience, made.acquire()).await {
            Ok(Ok(hold)) => {
                trial.count(|figures| figures.grants += 1);
                holds.push((hold, recipe.downgrade.filter(|_| weight == WRITER)));
            }
            Ok(Err(error)) => judge.failed(who, &error, false),
            Err(_) => trial.count(|figures| figures.aborted += 1),
        }
    }
    trial.pause(rng, 1_500).await;
    for (mut hold, how) in holds {
        if let Some(how) = how.filter(|_| rng.bool()) {
            match downgrade(hold, how).await {
                Ok(lesser) => hold = lesser,
                Err(error) => {
                    judge.failed(who, &error, false);
                    continue;
                }
            }
            trial.pause(rng, 300).await;
        }
        if rng.bool() {
            drop(hold.release().await);
        }
    }
}

/// Somebody creates znodes that are no contenders, and deletes them, until all is quiet.
async fn make_others(judge: &Judge, mut rng: Rng) {
    let administrator = judge.trial.simulation.administrator();
    while !judge.trial.is_quiet() {
        judge.trial.pause(&mut rng, 2_000).await;
        let (path, _) = QUEUES[rng.usize(..QUEUES.len())];
        let path = format!("{path}/note");
        let created = administrator.create(&path, b"", CreateMode::Persistent);
        if created == Err(Refusal::NodeExists) {
            drop(administrator.delete(&path));
        }
    }
    for (path, _) in QUEUES {
        drop(administrator.delete(&format!("{path}/note")));
    }
}

/// All sessions wait for each other: a look shows that, and says how to end it.
async fn plant(judge: &Judge, sessions: &[Session]) {
    let trial = &judge.trial;
    let holds = sessions
        .iter()
        .enumerate()
        .map(|(number, session)| hold(judge, session, number));
    let Some(holds) = trial
        .in_time("what nobody holds can be had", join_all(holds))
        .await
    else {
        return;
    };
    let next = |number: usize| (number + 1) % sessions.len();
    let waits = sessions.iter().enumerate();
    let waits = waits.map(|(number, session)| hold(judge, session, next(number)));
    let promise = "a deadlock is found, and its way out ends it";
    let broken = async {
        let out = find(judge, sessions).await;
        agree(judge, &sessions[0]).await;
        drop(trial.simulation.administrator().delete(&out));
    };
    let ended = async {
        // The one after the victim comes to hold.
        let waits = futures_util::future::select_all(waits.map(Box::pin));
        tokio::join!(biased; broken, waits).1.0
    };
    let within = trial.quiet_from + trial.bound() * 2;
    if timeout_at(within, ended).await.is_err() {
        trial.violated(promise, format!("{:?}", locked(&judge.referee)));
    }
    drop(holds);
}

async fn hold(judge: &Judge, session: &Session, number: usize) -> Hold {
    loop {
        match LOCK.at(session, &ring(number), 1).acquire().await {
            Ok(hold) => return hold,
            Err(error) => judge.failed("one of the ring", &error, false),
        }
    }
}

/// The live overview becomes equal to a look, while nothing changes.
async fn agree(judge: &Judge, session: &Session) {
    let Some(mut live) = locked(&judge.live).clone() else {
        return;
    };
    let shown = |overview: &Overview| {
        let queues = overview.queues().iter().map(|queue| {
            let contenders: Vec<_> = queue.contenders().collect();
            let facts = (
                queue.kind(),
                queue.marks(),
                queue.holders(),
                queue.foreign(),
            );
            format!("{}: {facts:?} {contenders:?}", queue.path())
        });
        let queues: Vec<_> = queues.collect();
        format!(
            "{queues:#?} {:#?} {:?}",
            overview.circles(),
            overview.sessions()
        )
    };
    let mut last = (String::new(), String::new());
    let equal = async {
        loop {
            let looked = Overview::below(session, "/").await;
            last.0 = looked.map_or_else(|error| error.to_string(), |it| shown(&it));
            last.1 = shown(&live.borrow_and_update().overview);
            if last.0 == last.1 {
                return;
            }
            sleep(PAUSE / 5).await;
        }
    };
    if timeout_at(Instant::now() + judge.trial.bound(), equal)
        .await
        .is_err()
    {
        let promise = "a live overview becomes equal to a look";
        let text = format!("{} and not {}", last.1, last.0);
        judge.trial.violated(promise, text);
    }
}

/// The path of the znode whose deletion ends the circle of these sessions.
async fn find(judge: &Judge, sessions: &[Session]) -> String {
    loop {
        let begun = Instant::now();
        match Overview::below(&sessions[0], BASE).await {
            Ok(overview) => {
                judge.looked("the last look", begun, &overview);
                let expected: BTreeSet<_> = sessions.iter().filter_map(Session::id).collect();
                for circle in overview.circles() {
                    let found = circle.waits.iter().map(|it| it.waiter.session_id);
                    let out = circle
                        .way_out()
                        .filter(|_| found.collect::<BTreeSet<_>>() == expected);
                    if let Some(out) = out {
                        return format!("{}/{}", out.path, out.blocker.name);
                    }
                }
            }
            Err(error) => judge.failed("the last look", &error, true),
        }
        sleep(Duration::from_millis(50)).await;
    }
}
