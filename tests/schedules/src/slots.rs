//! A job that runs at most once in each slot: what the ensemble has recorded, and who runs it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::{join_all, select_all};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use zookeeper_recipes_core::{Error, HoldView, Refusal, Session, SessionEnd};
use zookeeper_recipes_lock::{Again, OncePerSlot, OncePerSlotOptions, Slot, SlotRun};
use zookeeper_recipes_simulation::{Change, Committed};

use crate::run::{Report, Variant};
use crate::trial::{self, Trial};

const PATH: &str = "/recipe/job";

/// When the clocks begin, in seconds since 1970.
const BEGIN: u64 = 1_700_000_000;

/// A record as its text has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    /// When the slot begins, in milliseconds since 1970.
    slot: u64,
    state: String,
    token: String,
}

impl Record {
    fn parse(data: &[u8]) -> Option<Record> {
        let text = String::from_utf8_lossy(data);
        let mut words = text.split(' ');
        Some(Record {
            slot: words.next()?.parse().ok()?,
            state: words.next()?.to_owned(),
            token: words.next()?.to_owned(),
        })
    }

    /// The promise that is broken if this record follows `before`.
    fn breaks(&self, before: &Record, again: Again) -> Option<&'static str> {
        let is_the_same_run = self.token == before.token;
        match self.state.as_str() {
            _ if self == before => None,
            _ if self.slot < before.slot => Some("the recorded slot only grows"),
            "begun" if self.slot > before.slot => None,
            "begun" => {
                let may_begin = match again {
                    Again::Never => false,
                    Again::AfterFailure => before.state == "failed",
                    Again::UnlessDone => before.state != "done",
                };
                (!may_begin).then_some("a slot begins again only if it may")
            }
            _ if is_the_same_run && self.slot == before.slot && before.state == "begun" => None,
            _ => Some("only the last run records its end"),
        }
    }
}

#[derive(Default)]
struct State {
    last: Option<Record>,
    /// The tokens of the runs that were recorded as begun.
    recorded: BTreeSet<String>,
    /// The tokens of the runs that have begun in a process.
    begun: BTreeSet<String>,
    running: Vec<(String, HoldView)>,
}

struct Judge {
    trial: Arc<Trial>,
    again: Again,
    every: Duration,
    began: Instant,
    state: Mutex<State>,
}

impl Judge {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn committed(&self, committed: &Committed) {
        match &committed.change {
            Change::DataSet { path, data } if path == PATH => {
                let Some(record) = Record::parse(data) else {
                    let text = String::from_utf8_lossy(data).into_owned();
                    return self.trial.violated("the data is a record", text);
                };
                let mut state = self.state();
                if record.state == "begun" {
                    state.recorded.insert(record.token.clone());
                }
                let last = state.last.replace(record.clone());
                drop(state);
                let broken = last
                    .as_ref()
                    .and_then(|last| record.breaks(last, self.again));
                if let Some(promise) = broken {
                    let text = format!("{record:?} after {last:?}, {:?}", self.again);
                    self.trial.violated(promise, text);
                }
            }
            Change::SessionEnded { end, .. } if *end == SessionEnd::Expired => {
                self.trial.count(|figures| figures.expired += 1);
            }
            _ => {}
        }
    }

    /// A job begins in a process, under this hold.
    fn begins(&self, who: &str, hold: &HoldView) {
        let token = hold.fencing_token().to_string();
        self.trial
            .simulation
            .remark(format!("{who} runs with token {token}"));
        self.trial.count(|figures| figures.grants += 1);
        let mut state = self.state();
        let is_recorded = state.recorded.contains(&token);
        let is_first = state.begun.insert(token.clone());
        let running = state.running.clone();
        state.running.push((who.to_owned(), hold.clone()));
        drop(state);
        if !is_recorded {
            let promise = "a job runs only once its slot is recorded";
            self.trial.violated(promise, format!("{who} with {token}"));
        }
        if !is_first {
            self.trial
                .violated("a record has one run", format!("{who} with {token}"));
        }
        let other = running.iter().find(|(_, hold)| self.trial.is_certain(hold));
        if let Some((other, held)) = other.filter(|_| self.trial.is_certain(hold)) {
            let text = format!("{who} runs with {hold:?}, and {other} with {held:?}");
            self.trial
                .violated("one process runs the job at a time", text);
        }
    }

    fn ends(&self, hold: &HoldView) {
        let token = hold.fencing_token();
        let mut state = self.state();
        state
            .running
            .retain(|(_, other)| other.fencing_token() != token);
    }

    /// The job, by a clock that differs from the true time by so many milliseconds.
    fn job(&self, session: &Session, ahead: i64) -> OncePerSlot {
        let began = self.began;
        let clock = move || {
            let passed = began.elapsed().as_millis() as i64 + ahead;
            let passed = Duration::from_millis(passed.max(0) as u64);
            UNIX_EPOCH + Duration::from_secs(BEGIN) + passed
        };
        let options = OncePerSlotOptions::new().again(self.again).clock(clock);
        let job = OncePerSlot::with_options(session, PATH, self.every, options);
        job.expect("the options are good")
    }
}

/// Runs one seed.
pub(crate) fn run(seed: u64, trace_limit: usize, variant: &Variant) -> Report {
    trial::run((seed, trace_limit), variant, |trial, mut rng| async move {
        let all = [Again::Never, Again::AfterFailure, Again::UnlessDone];
        let judge = Arc::new(Judge {
            again: all[rng.usize(..3)],
            every: Duration::from_millis(rng.u64(500..=10_000)),
            began: Instant::now(),
            state: Mutex::default(),
            trial,
        });
        let observer = judge.clone();
        judge
            .trial
            .simulation
            .on_commit(move |committed| observer.committed(committed));
        participate(&judge, rng).await;
        *judge.state() = State::default();
    })
}

async fn participate(judge: &Judge, mut rng: Rng) {
    let trial = &judge.trial;
    let processes = join_all((0..trial.schedule.processes).map(|number| {
        let who = format!("p{number}");
        let rng = rng.fork();
        async move {
            let process = trial.simulation.process(&who);
            process.while_awake(contend(judge, &who, rng)).await
        }
    }));
    let meddling = trial.meddle(PATH, rng.fork());
    let all = async { tokio::join!(biased; meddling, processes).1 };
    let promise = "each process runs or finds a slot once things have ceased to go wrong";
    let Some(sessions) = trial.in_time(promise, all).await else {
        return;
    };
    let wrong = || {
        let children = trial.simulation.administrator().children(PATH);
        (!children.is_empty()).then(|| format!("{children:?}"))
    };
    trial
        .settles("no contender remains", trial.bound(), wrong)
        .await;
    trial.close(sessions).await;
}

/// Runs the job in one session after the other, and once more in the end.
async fn contend(judge: &Judge, who: &str, mut rng: Rng) -> Session {
    let trial = &judge.trial;
    let process = trial.simulation.process(who);
    let third = judge.every.as_millis() as i64 / 3;
    let ahead = rng.i64(-third..=third);
    loop {
        let session = trial.open(&process).await;
        let job = judge.job(&session, ahead);
        let lasts = Duration::from_millis(rng.u64(500..=15_000));
        let until = (Instant::now() + lasts).min(trial.quiet_from);
        let mut tasks: Vec<_> = (0..trial.schedule.contenders)
            .map(|number| {
                let (who, mut rng) = (format!("{who}.{number}"), rng.fork());
                let job = &job;
                async move {
                    loop {
                        round(judge, &who, job, &mut rng).await;
                    }
                }
                .boxed_local()
            })
            .collect();
        let _: Result<((), _, _), _> = timeout_at(until, select_all(tasks.iter_mut())).await;
        drop(tasks);
        if trial.is_quiet() {
            once_more(judge, who, &job).await;
            return session;
        }
        match rng.bool() {
            true => session.close().await,
            false => drop(session),
        }
    }
}

async fn round(judge: &Judge, who: &str, job: &OncePerSlot, rng: &mut Rng) {
    let trial = &judge.trial;
    trial.pause(rng, judge.every.as_millis() as u64 / 2).await;
    let patience = Duration::from_millis(rng.u64(0..=8_000));
    let begun = match rng.u8(..4) {
        0 => return run_whole(judge, who, job, rng).await,
        1 => job.try_begin().await,
        2 => match timeout(patience, job.begin()).await {
            Ok(begun) => begun,
            Err(_) => return trial.count(|figures| figures.aborted += 1),
        },
        _ => job.begin().await,
    };
    match begun {
        Ok(Some(run)) => {
            let hold = run.hold().view();
            judge.begins(who, &hold);
            work_and_end(judge, who, run, rng).await;
            judge.ends(&hold);
        }
        Ok(None) => {}
        Err(error) => failed(judge, who, &error),
    }
}

/// Works while it holds, and ends the run in some way.
async fn work_and_end(judge: &Judge, who: &str, run: SlotRun, rng: &mut Rng) {
    let work = judge.trial.pause(rng, 2_000);
    if run.hold().run_until_lost(work).await.is_err() {
        judge.trial.count(|figures| figures.losses += 1);
    }
    let patience = Duration::from_millis(rng.u64(0..=20));
    let ended = match rng.u8(..5) {
        0 => return drop(run),
        1 => timeout(patience, run.done()).await.unwrap_or(Ok(())),
        2 => run.done().await,
        _ => run.failed().await,
    };
    if let Err(error) = ended {
        failed(judge, who, &error);
    }
}

/// Runs the job by one call.
async fn run_whole(judge: &Judge, who: &str, job: &OncePerSlot, rng: &mut Rng) {
    let is_good = rng.bool();
    let work = async |slot: Slot| {
        judge.begins(who, slot.hold());
        judge.trial.pause(rng, 2_000).await;
        judge.ends(slot.hold());
        is_good.then_some(()).ok_or(())
    };
    if let Err(error) = job.run(work).await {
        failed(judge, who, &error);
    }
}

/// Runs, or finds that another has run, the job of a slot that begins now or later.
async fn once_more(judge: &Judge, who: &str, job: &OncePerSlot) {
    let now = BEGIN * 1_000 + judge.began.elapsed().as_millis() as u64;
    loop {
        let recorded = judge.state().last.clone();
        if recorded.is_some_and(|record| record.slot > now && record.state == "done") {
            return;
        }
        let work = async |slot: Slot| {
            judge.begins(who, slot.hold());
            sleep(Duration::from_millis(10)).await;
            judge.ends(slot.hold());
            Ok::<(), ()>(())
        };
        if let Err(error) = job.run(work).await {
            failed(judge, who, &error);
        }
        sleep(judge.every / 4).await;
    }
}

/// A call has failed: there is a reason.
fn failed(judge: &Judge, who: &str, error: &Error) {
    let trial = &judge.trial;
    trial.count(|figures| figures.errors += 1);
    trial.simulation.remark(format!("{who} fails: {error}"));
    let has_reason = match error {
        Error::Refused { refusal, .. } => matches!(refusal, Refusal::Throttled),
        Error::SessionOver { .. } | Error::Lost { .. } | Error::NoSession { .. } => true,
        Error::ContenderDeleted { .. } | Error::Disconnected { .. } => true,
        _ => false,
    };
    if !has_reason {
        let text = format!("{who}: {error:?}");
        trial.violated("a call fails only for a reason", text);
    }
}
