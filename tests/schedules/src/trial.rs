//! What runs have in common whose participants are no usual contenders.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use zookeeper_recipes_core::{Session, SessionId};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::LOCK;

use crate::invariants::remains;
use crate::place::UNDER_TEST;
use crate::run::{Report, Variant, in_a_world, observed, report, settles};
use crate::setting::Setting;
use crate::{data_loss, interference, process};

/// Runs a trial on a runtime of its own. Its ledger knows which holds are not judged, and has no
/// contenders.
pub(crate) fn run<F: Future<Output = ()>>(
    (seed, trace_limit): (u64, usize),
    variant: &Variant,
    participants: impl FnOnce(Arc<Setting>, Rng) -> F,
) -> Report {
    in_a_world(|| async move {
        let schedule = variant.schedule(&LOCK, seed, trace_limit);
        let simulation = Simulation::new(schedule.options.clone());
        let ledgers = observed(&simulation, &[(LOCK, UNDER_TEST)]);
        let setting = Arc::new(Setting::new(&simulation, schedule, &ledgers));
        let participants = participants(setting.clone(), Rng::with_seed(!seed));
        setting.within_limits(participants).await;
        report(&simulation, &ledgers)
    })
}

impl Setting {
    /// How long a call may take once things have ceased to go wrong.
    pub(crate) fn bound(&self) -> Duration {
        self.schedule.mends_within() + self.schedule.comes_through_within()
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
            let session = process::open(self, &self.simulation.process(process)).await;
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
        let loss = data_loss::run(self, &[], looks, rng.fork());
        let by_hand = async {
            loop {
                sleep(Duration::from_millis(rng.u64(20..=4_000))).await;
                self.delete_or_end(directory, &mut rng);
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
            tokio::join!(biased; until_quiet, self.lasting_faults());
            self.calms_down();
        };
        // What comes of a loss of data is looked at in the quiet, too.
        tokio::join!(biased; trouble, loss);
    }

    fn delete_or_end(&self, directory: &str, rng: &mut Rng) {
        let is_child = |path: &str| {
            let name = path.strip_prefix(directory);
            name.is_some_and(|name| name.starts_with('/'))
        };
        let mut children = self.simulation.administrator().tree();
        children.retain(|node| is_child(&node.path));
        let Some(child) = rng.choice(children) else {
            return;
        };
        match rng.bool() {
            true => interference::delete(self, &child.path),
            false => interference::end(self, SessionId(child.stat.ephemeral_owner)),
        }
    }

    /// Waits until nothing is wrong, and reports what is wrong after so long.
    pub(crate) async fn settles(
        &self,
        promise: &'static str,
        bound: Duration,
        wrong: impl Fn() -> Option<String>,
    ) {
        let look = || wrong().map(|text| (promise, text)).into_iter().collect();
        settles(&self.ledger, bound, look).await;
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
            let look = || remains::of_sessions(&self.simulation);
            settles(&self.ledger, self.bound(), look).await;
        }
    }
}
