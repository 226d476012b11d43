//! A job that runs at most once in each slot: what the ensemble has recorded, and who runs it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fastrand::Rng;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_core::{Error, HoldView, Refusal, Session};
use zookeeper_recipes_lock::{
    Again, OncePerSlot, OncePerSlotOptions, Slot, SlotClaim, SlotOutcome, SlotRun,
};
use zookeeper_recipes_simulation::{Change, Committed, SimulatedProcess};

use crate::invariants::anew;
use crate::run::{Report, Variant, in_processes};
use crate::setting::Setting;
use crate::trial;

const PATH: &str = "/recipe/job";

/// When the clocks begin, in seconds since 1970.
const BEGIN: u64 = 1_700_000_000;

/// A slot as a line of the record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    state: String,
    /// When the slot begins, in milliseconds since 1970.
    slot: u64,
    token: String,
}

/// A record as its text has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Record {
    run: Option<Line>,
    claim: Option<Line>,
}

impl Record {
    fn parse(data: &[u8]) -> Option<Record> {
        let text = String::from_utf8_lossy(data);
        let mut lines = text.lines();
        lines.next()?.strip_prefix("slots ")?;
        let mut record = Record::default();
        for line in lines {
            let mut words = line.split(' ');
            let line = Line {
                state: words.next()?.to_owned(),
                slot: words.next()?.parse().ok()?,
                token: words.next()?.to_owned(),
            };
            match line.state.as_str() {
                "claimed" => record.claim = Some(line),
                _ => record.run = Some(line),
            }
        }
        Some(record)
    }
}

/// The promise that is broken if `run` follows the run of `last`.
fn broken(run: &Line, last: &Record, again: Again) -> Option<&'static str> {
    let before = last.run.as_ref();
    let is_claimed = last
        .claim
        .as_ref()
        .is_some_and(|claim| (claim.slot, &claim.token) == (run.slot, &run.token));
    let Some(before) = before else {
        return (!is_claimed).then_some("a slot is claimed before it starts");
    };
    let may_begin = match again {
        _ if run.slot != before.slot => run.slot > before.slot,
        Again::Never => false,
        Again::AfterFailure => before.state == "failed",
        Again::UnlessDone => before.state != "done",
    };
    let is_the_same_run = (run.slot, &run.token) == (before.slot, &before.token);
    match run.state.as_str() {
        _ if run == before => None,
        _ if run.slot < before.slot => Some("the recorded slot only grows"),
        "started" if !is_claimed => Some("a slot is claimed before it starts"),
        "started" => (!may_begin).then_some("a slot begins again only if it may"),
        _ if is_the_same_run && before.state == "started" => None,
        _ => Some("only the last run records its end"),
    }
}

#[derive(Default)]
struct State {
    last: Record,
    /// The run before the last one that was recorded as started.
    before_start: Option<Line>,
    /// The tokens of the runs that were recorded as started.
    recorded: BTreeSet<String>,
    /// The tokens of all lines that were written.
    written: BTreeSet<String>,
    /// Those of them from before the servers lost data: these runs can still record something.
    before: BTreeSet<String>,
    /// The tokens of the runs that have begun in a process.
    begun: BTreeSet<String>,
    running: Vec<(String, HoldView)>,
}

impl State {
    /// Notes what was written. Returns the promise that is broken by it.
    fn written(&mut self, record: Record, again: Again) -> Option<&'static str> {
        let lines = [&record.run, &record.claim].into_iter().flatten();
        self.written.extend(lines.map(|line| line.token.clone()));
        let is_of_before = |run: &Line| self.before.contains(&run.token);
        let is_of_before = record.run.as_ref().is_some_and(is_of_before);
        let broken = self.judged(record, again);
        broken.filter(|_| !is_of_before)
    }

    fn judged(&mut self, record: Record, again: Again) -> Option<&'static str> {
        let last = std::mem::replace(&mut self.last, record.clone());
        let is_given_back = record.claim.is_none()
            && record.run == self.before_start
            && last.run.as_ref().is_some_and(|run| run.state == "started");
        if is_given_back {
            let has_run = last.run.is_some_and(|run| self.begun.contains(&run.token));
            return has_run.then_some("a slot is given back only if nothing has run");
        }
        let Some(run) = record.run else {
            return last.run.map(|_| "a run is not forgotten");
        };
        if run.state == "started" && last.run.as_ref() != Some(&run) {
            self.recorded.insert(run.token.clone());
            self.before_start = last.run.clone();
        }
        broken(&run, &last, again)
    }

    /// The servers have come back with this data. Tokens can come again.
    fn begin_anew(&mut self, data: &[Committed]) {
        let record = data.iter().find_map(|it| match &it.change {
            Change::Created { path, data, .. } if path == PATH => Record::parse(data),
            _ => None,
        });
        self.last = record.unwrap_or_default();
        self.before_start = None;
        self.before.clone_from(&self.written);
        self.begun.clear();
    }
}

struct Judge {
    trial: Arc<Setting>,
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
        self.trial.ledger.committed(committed);
        match &committed.change {
            Change::DataReplaced { data } => self.state().begin_anew(data),
            Change::DataSet { path, data } if path == PATH => {
                let Some(record) = Record::parse(data) else {
                    let text = String::from_utf8_lossy(data).into_owned();
                    return self.trial.violated("the data is a record", text);
                };
                let mut state = self.state();
                let last = state.last.clone();
                let broken = state.written(record.clone(), self.again);
                drop(state);
                if let Some(promise) = broken {
                    let text = format!("{record:?} after {last:?}, {:?}", self.again);
                    self.trial.violated(promise, text);
                }
            }
            _ => {}
        }
    }

    /// The servers have lost data, and no run has a lease from before.
    fn look_at_gone(&self) {
        let running = self.state().running.clone();
        for (who, hold) in running {
            let (ledger, now) = (&self.trial.ledger, self.trial.simulation.now());
            ledger.look(|state| anew::at_look(state, now, &who, &hold));
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
        if self.trial.ledger.is_gone(hold) {
            // The slot was recorded in what the servers have lost.
            return state.running.push((who.to_owned(), hold.clone()));
        }
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
        let other = running
            .iter()
            .find(|(_, hold)| self.trial.ledger.is_certain(hold));
        if let Some((other, held)) = other.filter(|_| self.trial.ledger.is_certain(hold)) {
            let text = format!("{who} runs with {hold:?}, and {other} with {held:?}");
            self.trial
                .violated("one process runs the job at a time", text);
        }
    }

    fn ends(&self, hold: &HoldView) {
        let (path, token) = (hold.node_path(), hold.fencing_token());
        let is_another = |it: &HoldView| it.node_path() != path || it.fencing_token() != token;
        self.state().running.retain(|(_, other)| is_another(other));
    }

    /// The job, by a clock that differs from the true time by so many milliseconds.
    fn job(&self, session: &Session, ahead: i64) -> OncePerSlot {
        let began = self.began;
        let clock = move || {
            let passed = began.elapsed().as_millis() as i64 + ahead;
            let now = BEGIN as i64 * 1_000 + passed;
            UNIX_EPOCH + Duration::from_millis(now.unsigned_abs())
        };
        let options = OncePerSlotOptions::new()
            .again(self.again)
            .clock(clock)
            .clock_may_differ(self.every);
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
            // Each divides a day.
            every: Duration::from_millis([500, 1_000, 2_000, 5_000, 10_000][rng.usize(..5)]),
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
    let names = (0..trial.schedule.processes).map(|number| format!("p{number}"));
    let contends = async |process: SimulatedProcess, rng| contend(judge, process.name(), rng).await;
    let processes = in_processes(&trial.simulation, names, &mut rng, &contends);
    let meddling = trial.meddle(PATH, rng.fork(), || judge.look_at_gone());
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
    let third = judge.every.as_millis() as i64 / 3;
    // The first process is one of those that run the job in the end.
    let has_wrong_clock = who != "p0" && rng.u8(..6) == 0;
    let ahead = match has_wrong_clock {
        // By hours. The time that a write takes is no difference of clocks.
        true => 3_600_000 * rng.i64(1..20) * if rng.bool() { 1 } else { -1 },
        false => rng.i64(-third..=third),
    };
    let begin = |session: &Session| judge.job(session, ahead);
    let round = async |job: &OncePerSlot, who: &str, rng: &mut Rng| {
        let contender = Contender {
            judge,
            who: who.to_owned(),
            job,
            has_wrong_clock,
        };
        contender.round(rng).await;
    };
    let (session, job) = trial.in_sessions(who, &mut rng, begin, round).await;
    let contender = Contender {
        judge,
        who: who.to_owned(),
        job: &job,
        has_wrong_clock,
    };
    contender.once_more().await;
    session
}

/// One task of a process.
struct Contender<'a> {
    judge: &'a Judge,
    who: String,
    job: &'a OncePerSlot,
    /// True if the clock differs by more than is allowed.
    has_wrong_clock: bool,
}

impl Contender<'_> {
    async fn round(&self, rng: &mut Rng) {
        let (trial, job) = (&self.judge.trial, self.job);
        let pause = self.judge.every.as_millis() as u64 / 2;
        trial.pause(rng, pause).await;
        let patience = Duration::from_millis(rng.u64(0..=8_000));
        let claimed = match rng.u8(..4) {
            0 => return self.run_whole(rng).await,
            1 => job.try_begin().await.map(|tried| tried?.own()),
            2 => match timeout(patience, job.begin()).await {
                Ok(claimed) => claimed.map(SlotOutcome::own),
                Err(_) => return trial.count(|figures| figures.aborted += 1),
            },
            _ => job.begin().await.map(SlotOutcome::own),
        };
        let ended = match claimed {
            Ok(Some(claim)) => self.start(claim, rng).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            self.failed(&error);
        }
    }

    /// Starts what was claimed, and runs it, or does neither.
    async fn start(&self, claim: SlotClaim, rng: &mut Rng) -> Result<(), Error> {
        let judge = self.judge;
        if self.has_wrong_clock {
            let text = format!("{} has claimed {claim:?}", self.who);
            judge.trial.violated("a wrong clock claims no slot", text);
        }
        let patience = Duration::from_millis(rng.u64(0..=20));
        let run = match rng.u8(..8) {
            0 => return claim.give_back().await,
            1 => {
                drop(claim);
                return Ok(());
            }
            2 => match timeout(patience, claim.start()).await {
                Ok(run) => run?,
                Err(_) => {
                    judge.trial.count(|figures| figures.aborted += 1);
                    return Ok(());
                }
            },
            _ => claim.start().await?,
        };
        match rng.u8(..8) {
            0 => return run.give_back().await,
            1 => return timeout(patience, run.give_back()).await.unwrap_or(Ok(())),
            _ => {}
        }
        let hold = run.hold().view();
        judge.begins(&self.who, &hold);
        let ended = work_and_end(judge, run, rng).await;
        judge.ends(&hold);
        ended
    }

    /// Runs the job by one call.
    async fn run_whole(&self, rng: &mut Rng) {
        let is_good = rng.bool();
        let work = async |slot: Slot| {
            self.judge.begins(&self.who, slot.hold());
            self.judge.trial.pause(rng, 2_000).await;
            self.judge.ends(slot.hold());
            is_good.then_some(()).ok_or(())
        };
        if let Err(error) = self.job.run(work).await {
            self.failed(&error);
        }
    }

    /// Runs, or finds that another has run, the job of a slot that begins now or later.
    async fn once_more(&self) {
        if self.has_wrong_clock {
            return;
        }
        let judge = self.judge;
        let now = BEGIN * 1_000 + judge.began.elapsed().as_millis() as u64;
        loop {
            let recorded = judge.state().last.run.clone();
            if recorded.is_some_and(|run| run.slot > now && run.state == "done") {
                return;
            }
            let work = async |slot: Slot| {
                judge.begins(&self.who, slot.hold());
                sleep(Duration::from_millis(10)).await;
                judge.ends(slot.hold());
                Ok::<(), ()>(())
            };
            if let Err(error) = self.job.run(work).await {
                self.failed(&error);
            }
            sleep(judge.every / 4).await;
        }
    }

    /// A call has failed: there is a reason.
    fn failed(&self, error: &Error) {
        let trial = &self.judge.trial;
        let has_reason = match error {
            // The record of older data has an older version.
            Error::Refused { refusal, .. } => match refusal {
                Refusal::BadVersion => trial.ledger.has_lost_data(),
                refusal => matches!(refusal, Refusal::Throttled),
            },
            Error::SessionOver { .. } | Error::Lost { .. } | Error::NoSession { .. } => true,
            Error::ContenderDeleted { .. } | Error::Disconnected { .. } => true,
            Error::InvalidInput(_) => self.has_wrong_clock,
            _ => false,
        };
        trial.failed(&self.who, error, has_reason);
    }
}

/// Works while it holds, and ends the run in some way.
async fn work_and_end(judge: &Judge, run: SlotRun, rng: &mut Rng) -> Result<(), Error> {
    let work = judge.trial.pause(rng, 2_000);
    if run.hold().run_until_lost(work).await.is_err() {
        judge.trial.count(|figures| figures.losses += 1);
    }
    let patience = Duration::from_millis(rng.u64(0..=20));
    match rng.u8(..5) {
        0 => {
            drop(run);
            Ok(())
        }
        1 => timeout(patience, run.done()).await.unwrap_or(Ok(())),
        2 => run.done().await,
        _ => run.failed().await,
    }
}
