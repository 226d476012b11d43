//! What becomes of the workers and of the members of the ensemble.

use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::time::sleep;
use zookeeper_recipes_assignment::{AssignmentOperator, Session};
use zookeeper_recipes_suite::{PATIENCE, TICK, session};
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::workers::{PATH, SESSION_TIMEOUT, Workers};

const WORKERS: [&str; 3] = ["a", "b", "c"];

/// Longer than a session lives that is silent.
const LONGER_THAN_A_SESSION: Duration = Duration::from_secs(SESSION_TIMEOUT.as_secs() * 2);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// A worker is killed together with the member that leads.
    Killed,
    /// A worker is stopped, and continues when others own its partitions.
    Stopped,
    Drained,
    Restarted,
    /// Two of three members are killed for longer than a session lives.
    QuorumLost,
}

impl Fault {
    pub(crate) const ALL: [Fault; 5] = [
        Fault::Killed,
        Fault::Stopped,
        Fault::Drained,
        Fault::Restarted,
        Fault::QuorumLost,
    ];
}

pub(crate) struct Faults {
    ensemble: Ensemble,
    workers: Workers,
    session: Session,
    operator: AssignmentOperator,
    rng: Rng,
    began: Instant,
}

impl Faults {
    pub(crate) async fn begin(rng: Rng) -> Faults {
        let options = ServerOptions::new()
            .tick_time(TICK)
            .start_timeout(2 * PATIENCE);
        let ensemble = Ensemble::start(3, options).await.expect("an ensemble");
        let mut workers = Workers::new(ensemble.connect_string());
        for worker in WORKERS {
            workers.start(worker);
        }
        workers.balanced(&WORKERS).await;
        let session = session(&ensemble, SESSION_TIMEOUT).await;
        let operator = AssignmentOperator::new(&session, PATH).expect("a good path");
        Faults {
            ensemble,
            workers,
            session,
            operator,
            rng,
            began: Instant::now(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn say(&self, what: &str) {
        println!("{:6.2} s  {what}", self.elapsed().as_secs_f64());
    }

    /// Lets a fault strike, and waits until the partitions are balanced again.
    pub(crate) async fn strike(&mut self, fault: Fault) {
        let worker = WORKERS[self.rng.usize(..WORKERS.len())];
        let others: Vec<&str> = WORKERS.into_iter().filter(|it| *it != worker).collect();
        self.say(&format!("{fault:?}: {worker}"));
        match fault {
            Fault::Killed => {
                let leader = self.ensemble.leader().await.expect("a leader");
                self.workers.kill(worker);
                self.kill_member(leader).await;
                self.workers.balanced(&others).await;
                self.restart_member(leader).await;
                self.workers.start(worker);
            }
            Fault::Stopped => {
                self.workers.stop(worker);
                self.workers.balanced(&others).await;
                self.workers.resume(worker);
            }
            Fault::Drained => {
                self.operator.drain(worker).await.expect("it is ordered");
                self.workers.balanced(&others).await;
                let undrained = self.operator.undrain(worker).await;
                undrained.expect("it is taken back");
            }
            Fault::Restarted => {
                self.workers.end(worker).await;
                self.workers.start(worker);
            }
            Fault::QuorumLost => {
                let leader = self.ensemble.leader().await.expect("a leader");
                let other = (leader + 1) % 3;
                self.kill_member(leader).await;
                self.kill_member(other).await;
                self.workers.until("lost", |owners| owners.is_empty()).await;
                sleep(LONGER_THAN_A_SESSION).await;
                self.restart_member(leader).await;
                self.restart_member(other).await;
            }
        }
        self.workers.balanced(&WORKERS).await;
        let all = self.ensemble.wait_until_all_serve().await;
        all.expect("all members serve");
        self.say("balanced");
    }

    async fn kill_member(&mut self, member: usize) {
        let killed = self.ensemble.members_mut()[member].kill().await;
        killed.expect("it is killed");
    }

    async fn restart_member(&mut self, member: usize) {
        self.ensemble.restart(member).await.expect("it starts");
    }

    /// Shuts all workers down.
    pub(crate) async fn end(mut self) {
        for worker in WORKERS {
            self.workers.end(worker).await;
        }
        let report = self.workers.until("free", |owners| owners.is_empty()).await;
        println!("{} grants, {} pieces of work", report.grants, report.works);
        // Each worker owned partitions, lost them and owned some again.
        assert!(report.grants > 20 && report.works > 1_000, "{report:#?}");
        self.session.close().await;
    }
}
