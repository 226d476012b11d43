//! The ground of a run whose participants are no usual contenders: the simulation, its schedule, and
//! what was found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use zookeeper_recipes_core::{ConnectOptions, HoldView, Session, SessionEnd, SessionId};
use zookeeper_recipes_simulation::{Change, Committed, SimulatedProcess, Simulation};
use zookeeper_recipes_suite::LOCK;
use zookeeper_recipes_testkit::history::History;

use crate::data_loss;
use crate::figures::Figures;
use crate::findings::Violation;
use crate::invariants::{anew, remains};
use crate::run::{Report, Variant, in_a_world};
use crate::schedule::Schedule;

/// The simulation of a run, its schedule, and what was found in it.
pub(crate) struct Trial {
    pub(crate) simulation: Simulation,
    pub(crate) schedule: Schedule,
    /// When things cease to go wrong, and everybody comes to an end.
    pub(crate) quiet_from: Instant,
    found: Mutex<Found>,
}

struct Found {
    violations: Vec<Violation>,
    figures: Figures,
    /// Knows which holds are not judged.
    history: History,
    /// The znodes that exist, with the transactions that created them.
    standing: BTreeMap<String, (i64, Option<SessionId>)>,
    /// The sessions that have ended.
    ended: BTreeSet<SessionId>,
    /// When the holds of those are lost, at the latest.
    lost_by: Option<Duration>,
}

/// Runs a trial on a runtime of its own.
pub(crate) fn run<F: Future<Output = ()>>(
    (seed, trace_limit): (u64, usize),
    variant: &Variant,
    participants: impl FnOnce(Arc<Trial>, Rng) -> F,
) -> Report {
    in_a_world(|| async move {
        let schedule = variant.schedule(&LOCK, seed, trace_limit);
        let simulation = Simulation::new(schedule.options.clone());
        simulation.faults().set_rates(schedule.rates.clone());
        let trial = Arc::new(Trial {
            quiet_from: Instant::now() + schedule.troubled,
            simulation,
            schedule,
            found: Mutex::new(Found::new()),
        });
        let rng = Rng::with_seed(!seed);
        tokio::select! {
            biased;
            () = participants(trial.clone(), rng) => {}
            text = trial.simulation.exceeds_its_limits() => {
                trial.violated("nothing continues without end", text);
            }
        }
        trial.report()
    })
}

/// A znode that a change creates, and the transaction that creates it.
fn created(committed: &Committed) -> Option<(String, (i64, Option<SessionId>))> {
    match &committed.change {
        Change::Created {
            path,
            ephemeral_owner,
            ..
        } => Some((path.clone(), (committed.zxid, *ephemeral_owner))),
        _ => None,
    }
}

impl Found {
    fn new() -> Found {
        Found {
            violations: Vec::new(),
            figures: Figures::default(),
            history: History::new(1),
            standing: BTreeMap::new(),
            ended: BTreeSet::new(),
            lost_by: None,
        }
    }

    /// A session is there again, perhaps one that had ended. Its client need not know that.
    fn revive(&mut self, session: SessionId) {
        if self.ended.remove(&session) {
            self.history.disregard_session(session);
        }
    }
}

impl Trial {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violated(&self, promise: &'static str, text: String) {
        let at = self.simulation.now();
        self.simulation
            .remark(format!("VIOLATION: {promise}: {text}"));
        let violation = Violation { at, promise, text };
        self.found().violations.push(violation);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.found().violations.is_empty()
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.found().figures);
    }

    pub(crate) fn is_quiet(&self) -> bool {
        Instant::now() >= self.quiet_from
    }

    /// Sleeps up to so many milliseconds, but not into the quiet.
    pub(crate) async fn pause(&self, rng: &mut Rng, most: u64) {
        let until = Instant::now() + Duration::from_millis(rng.u64(0..=most));
        sleep_until(until.min(self.quiet_from)).await;
    }

    /// How long a call may take once things have ceased to go wrong.
    pub(crate) fn bound(&self) -> Duration {
        self.schedule.mends_within() + self.schedule.comes_through_within()
    }

    /// True if the owner of this hold has to know that it is lost before another can have it.
    pub(crate) fn is_certain(&self, hold: &HoldView) -> bool {
        let is_disregarded = self.found().history.is_disregarded(hold);
        !is_disregarded && hold.is_held()
    }

    /// True if the hold's znode has gone with the data of the servers.
    pub(crate) fn is_gone(&self, hold: &HoldView) -> bool {
        self.found().history.is_gone(hold)
    }

    /// True if the servers have lost data.
    pub(crate) fn has_lost_data(&self) -> bool {
        self.found().lost_by.is_some()
    }

    /// Takes in what the ensemble has just committed.
    pub(crate) fn committed(&self, committed: &Committed) {
        let mut found = self.found();
        match &committed.change {
            Change::Created { .. } => found.standing.extend(created(committed)),
            Change::Deleted { path } => {
                let until = found.lost_by.unwrap_or_default();
                let owner = found.standing.remove(path);
                let owner = owner.and_then(|(zxid, owner)| Some((zxid, owner?)));
                let by_another = |owner| committed.session.is_some_and(|by| by != owner);
                if let Some((zxid, owner)) = owner.filter(|(_, owner)| by_another(*owner)) {
                    if committed.at <= until {
                        found.history.disregard_hold(path, zxid.into(), owner);
                    }
                }
            }
            Change::DataReplaced { data } => {
                let before = std::mem::take(&mut found.standing);
                found.standing.extend(data.iter().filter_map(created));
                let standing = found.standing.clone();
                let gone = before.into_iter();
                let gone = gone.filter(|(path, created)| standing.get(path) != Some(created));
                let gone =
                    gone.filter_map(|(path, (zxid, owner))| Some((path, zxid.into(), owner?)));
                found.history.lose(gone);
                for committed in data {
                    if let Change::SessionOpened { session } = committed.change {
                        found.revive(session);
                    }
                }
            }
            Change::SessionEnded { end, session } => {
                found.ended.insert(*session);
                found.figures.expired += u64::from(*end == SessionEnd::Expired);
            }
            _ => {}
        }
    }

    /// A hold lasts, or begins. If its znode has gone with the data of the servers, its lease does.
    pub(crate) fn look_at_gone(&self, who: &str, hold: &HoldView) {
        let found = self.found();
        let is_late = found.lost_by.is_some_and(|by| self.simulation.now() >= by);
        let is_broken = is_late && found.history.is_gone(hold);
        drop(found);
        if is_broken && hold.is_held() {
            self.violated(anew::PROMISE, format!("{who}: {hold:?}"));
        }
    }

    /// Opens a session, again and again until one opens.
    pub(crate) async fn open(&self, process: &SimulatedProcess) -> Session {
        loop {
            let options = ConnectOptions::new()
                .connection_timeout(self.schedule.connects_within())
                .tick(self.schedule.options.tick);
            match Session::open(process.ensemble(), options).await {
                Ok(session) => return session,
                Err(error) => self.simulation.remark(format!("no session opens: {error}")),
            }
        }
    }

    /// Opens one session of a process after the other, each with tasks that go round and round in it,
    /// until all is quiet. The call returns the last session, and what was begun in it.
    pub(crate) async fn in_sessions<T>(
        &self,
        process: &str,
        rng: &mut Rng,
        begin: impl Fn(&Session) -> T,
        round: impl AsyncFn(&T, &str, &mut Rng),
    ) -> (Session, T) {
        loop {
            let session = self.open(&self.simulation.process(process)).await;
            let begun = begin(&session);
            let lasts = Duration::from_millis(rng.u64(500..=15_000));
            let until = (Instant::now() + lasts).min(self.quiet_from);
            let mut tasks: Vec<_> = (0..self.schedule.contenders)
                .map(|number| {
                    let (who, mut rng) = (format!("{process}.{number}"), rng.fork());
                    let (begun, round) = (&begun, &round);
                    async move {
                        loop {
                            round(begun, &who, &mut rng).await;
                        }
                    }
                    .boxed_local()
                })
                .collect();
            // What they were about is dropped wherever it is.
            let _: Result<((), _, _), _> = timeout_at(until, select_all(tasks.iter_mut())).await;
            drop(tasks);
            if self.is_quiet() {
                return (session, begun);
            }
            match rng.bool() {
                true => session.close().await,
                false => drop(session),
            }
        }
    }

    /// Has things go wrong until the quiet begins, also by the hand of somebody who deletes children
    /// of this znode, and ends their sessions.
    ///
    /// If the servers lose data, `looks` is called when the holds are lost that have gone with it.
    pub(crate) async fn meddle(&self, directory: &str, mut rng: Rng, looks: impl Fn()) {
        let judge = data_loss::Judge {
            expects: &|by| self.found().lost_by = Some(by),
            looks: &looks,
            evicts: &|path| self.found().history.disregard_znode(path),
        };
        let (simulation, schedule) = (&self.simulation, &self.schedule);
        let loss = data_loss::run(simulation, schedule, &[], rng.fork(), judge);
        let by_hand = async {
            loop {
                sleep(Duration::from_millis(rng.u64(20..=4_000))).await;
                self.delete_or_end(directory, &mut rng);
            }
        };
        let lasting = async {
            if let Some(lasting) = &self.schedule.lasting {
                lasting.happen(&self.simulation).await;
            }
        };
        let until_quiet = async {
            tokio::select! {
                biased;
                () = sleep_until(self.quiet_from) => {}
                () = by_hand, if self.schedule.interference.deletes_contenders > 0 => {}
            }
        };
        let trouble = async {
            tokio::join!(biased; until_quiet, lasting);
            self.simulation.faults().stop();
            self.simulation.remark("from here on all is quiet");
        };
        // What comes of a loss of data is looked at in the quiet, too.
        tokio::join!(biased; trouble, loss);
    }

    fn delete_or_end(&self, directory: &str, rng: &mut Rng) {
        let administrator = self.simulation.administrator();
        let is_child = |path: &str| {
            let name = path.strip_prefix(directory);
            name.is_some_and(|name| name.starts_with('/'))
        };
        let children = administrator.tree().into_iter();
        let Some(child) = rng.choice(
            children
                .filter(|node| is_child(&node.path))
                .collect::<Vec<_>>(),
        ) else {
            return;
        };
        if rng.bool() {
            self.simulation
                .remark(format!("somebody deletes {}", child.path));
            self.found().history.disregard_znode(&child.path);
            // It may have gone by now.
            let _ = administrator.delete(&child.path);
            self.count(|figures| figures.deleted_by_hand += 1);
        } else {
            let session = SessionId(child.stat.ephemeral_owner);
            self.simulation
                .remark(format!("somebody ends session {session}"));
            self.found().history.disregard_session(session);
            administrator.expire(session);
        }
    }

    /// Waits until nothing is wrong, and reports what is wrong after so long.
    pub(crate) async fn settles(
        &self,
        promise: &'static str,
        bound: Duration,
        wrong: impl Fn() -> Option<String>,
    ) {
        let last = Instant::now() + bound;
        while let Some(text) = wrong() {
            if Instant::now() >= last {
                return self.violated(promise, text);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Awaits what comes through once all is quiet. `None` and a violation if it takes longer.
    pub(crate) async fn in_time<T>(
        &self,
        promise: &'static str,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        match timeout_at(self.quiet_from + self.bound(), work).await {
            Ok(done) => Some(done),
            Err(_) => {
                let children = self.simulation.administrator().tree();
                let paths: Vec<String> = children.into_iter().map(|node| node.path).collect();
                self.violated(promise, format!("some still wait; the tree is {paths:?}"));
                None
            }
        }
    }

    /// Closes the sessions. Nothing of them remains, unless a fault lasts.
    pub(crate) async fn close(&self, sessions: Vec<Session>) {
        for session in sessions {
            session.close().await;
        }
        if self.schedule.lasting.is_none() && self.is_clean() {
            let wrong = || {
                let findings = remains::of_sessions(&self.simulation);
                (!findings.is_empty()).then(|| format!("{findings:?}"))
            };
            self.settles("nothing remains of the sessions", self.bound(), wrong)
                .await;
        }
    }

    fn report(&self) -> Report {
        self.simulation.on_commit(|_| ());
        let found = std::mem::replace(&mut *self.found(), Found::new());
        Report {
            violations: found.violations,
            trace: self.simulation.trace(),
            figures: found.figures,
            ..Report::default()
        }
    }
}
