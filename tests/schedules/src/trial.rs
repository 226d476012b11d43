//! The ground of a run whose participants are no usual contenders: the simulation, its schedule, and
//! what was found.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use zookeeper_recipes_core::{ConnectOptions, Session, SessionId};
use zookeeper_recipes_simulation::{SimulatedProcess, Simulation};
use zookeeper_recipes_suite::LOCK;

use crate::data_loss;
use crate::figures::Figures;
use crate::invariants::remains;
use crate::ledger::Ledger;
use crate::place::UNDER_TEST;
use crate::run::{Report, Variant, in_a_world, report};
use crate::schedule::Schedule;

/// The simulation of a run, its schedule, and what was found in it.
pub(crate) struct Trial {
    pub(crate) simulation: Simulation,
    pub(crate) schedule: Schedule,
    /// When things cease to go wrong, and everybody comes to an end.
    pub(crate) quiet_from: Instant,
    /// Takes in what is committed, and knows which holds are not judged. It has no contenders.
    pub(crate) ledger: Arc<Ledger>,
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
            ledger: Arc::new(Ledger::new(simulation.clone(), LOCK, UNDER_TEST)),
            simulation,
            schedule,
        });
        let rng = Rng::with_seed(!seed);
        tokio::select! {
            biased;
            () = participants(trial.clone(), rng) => {}
            text = trial.simulation.exceeds_its_limits() => {
                trial.violated("nothing continues without end", text);
            }
        }
        report(&trial.simulation, std::slice::from_ref(&trial.ledger))
    })
}

impl Trial {
    pub(crate) fn violated(&self, promise: &'static str, text: String) {
        self.ledger.violated(promise, text);
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Figures)) {
        self.ledger.count(count);
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
            expects: &|by| self.ledger.expect_losses(by),
            looks: &looks,
            evicts: &|path| self.ledger.evict(path),
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
            self.ledger.delete_by_hand(&child.path);
            // It may have gone by now.
            let _ = administrator.delete(&child.path);
        } else {
            let session = SessionId(child.stat.ephemeral_owner);
            self.simulation
                .remark(format!("somebody ends session {session}"));
            self.ledger.end_by_hand(session);
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
        if self.schedule.lasting.is_none() && self.ledger.is_clean() {
            let wrong = || {
                let findings = remains::of_sessions(&self.simulation);
                (!findings.is_empty()).then(|| format!("{findings:?}"))
            };
            self.settles("nothing remains of the sessions", self.bound(), wrong)
                .await;
        }
    }
}
