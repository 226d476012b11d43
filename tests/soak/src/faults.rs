//! What becomes of the processes and of the members of the ensemble.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use fastrand::Rng;
use tokio::time::sleep;
use zookeeper_recipes_assignment::{AssignmentOperator, ConnectOptions, Session};
use zookeeper_recipes_benches::report::{Machine, help};
use zookeeper_recipes_interop::Report;
use zookeeper_recipes_testkit::{Ensemble, ServerOptions};

use crate::contender::RECIPES;
use crate::order::Order;
use crate::processes::Processes;
use crate::settings::{PARTITIONS, PATH, SESSION_TIMEOUT, TICK};

const WORKERS: [&str; 3] = ["a", "b", "c"];

/// Longer than a session lives that is silent.
const LONGER_THAN_A_SESSION: Duration = Duration::from_secs(SESSION_TIMEOUT.as_secs() * 3 / 2);

/// A fault. The help says what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Fault {
    #[value(help = "a process that holds everything is killed (SIGKILL), together with the leader")]
    Killed,
    #[value(help = "a process that holds everything is stopped (SIGSTOP) until others hold")]
    Stopped,
    #[value(help = "an operator drains a worker")]
    Drained,
    #[value(help = "a process shuts down and is started again")]
    Restarted,
    #[value(help = "the leader is stopped (SIGSTOP)")]
    LeaderStopped,
    #[value(help = "a follower is stopped (SIGSTOP)")]
    FollowerStopped,
    #[value(help = "the leader is cut off from the other members")]
    LeaderIsolated,
    #[value(help = "all members are restarted, one after the other")]
    AllRestarted,
    #[value(help = "two of three members are killed, for longer than a session lives")]
    QuorumLost,
}

/// How often a fault came, and how soon all was well again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) times: usize,
    /// The longest time from the end of the fault until every recipe was granted again and the
    /// partitions were balanced.
    pub(crate) longest: Duration,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) machine: Machine,
    pub(crate) lasted: Duration,
    pub(crate) faults: BTreeMap<Fault, Count>,
    pub(crate) report: Report,
}

#[derive(Debug)]
pub(crate) struct Faults {
    ensemble: Ensemble,
    processes: Processes,
    session: Session,
    operator: AssignmentOperator,
    rng: Rng,
    began: Instant,
}

impl Faults {
    pub(crate) async fn begin(rng: Rng) -> anyhow::Result<Faults> {
        let options = ServerOptions::new()
            .tick_time(TICK)
            .start_timeout(Duration::from_secs(300));
        let ensemble = Ensemble::start_with_partitions(3, options).await?;
        let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
        let session = Session::connect_with(&ensemble.connect_string(), options).await?;
        let mut processes = Processes::new(ensemble.connect_string(), session.clone())?;
        for worker in WORKERS {
            processes.start(worker)?;
        }
        let operator = AssignmentOperator::new(&session, PATH)?;
        Ok(Faults {
            ensemble,
            processes,
            session,
            operator,
            rng,
            began: Instant::now(),
        })
    }

    /// Lets the faults strike until this time has passed, and each once at least. Then shuts all
    /// processes down.
    pub(crate) async fn run(mut self, lasts: Duration) -> anyhow::Result<Outcome> {
        self.recovered(&WORKERS).await?;
        let machine = Machine::with(&self.ensemble).await?;
        let mut counts = BTreeMap::<Fault, Count>::new();
        let mut order = Fault::value_variants().to_vec();
        loop {
            self.rng.shuffle(&mut order);
            for &fault in &order {
                let is_new = !counts.contains_key(&fault);
                if is_new || self.began.elapsed() < lasts {
                    let count = counts.entry(fault).or_default();
                    count.times += 1;
                    count.longest = count.longest.max(self.strike(fault).await?);
                }
            }
            if self.began.elapsed() >= lasts {
                break;
            }
        }
        for worker in WORKERS {
            self.processes.end(worker).await?;
        }
        let is_free = |report: &Report| report.owners.is_empty();
        self.processes.until("free", is_free).await?;
        self.session.close().await;
        Ok(Outcome {
            machine,
            lasted: self.began.elapsed(),
            faults: counts,
            report: self.processes.report(),
        })
    }

    fn say(&self, what: &str) {
        println!("{:8.2} s  {what}", self.began.elapsed().as_secs_f64());
    }

    /// Lets a fault strike, and returns how long after its end all was well again.
    async fn strike(&mut self, fault: Fault) -> anyhow::Result<Duration> {
        let worker = WORKERS[self.rng.usize(..WORKERS.len())];
        self.say(&format!("{worker}: {}", help(&fault)));
        match fault {
            Fault::Killed => self.kill(worker).await?,
            Fault::Stopped => self.stop(worker).await?,
            Fault::Drained => {
                self.operator.drain(worker).await?;
                self.balanced(&others(worker)).await?;
                self.operator.undrain(worker).await?;
            }
            Fault::Restarted => {
                self.processes.end(worker).await?;
                self.processes.start(worker)?;
            }
            Fault::LeaderStopped => {
                let leader = self.ensemble.leader().await?;
                self.stop_member(leader).await?;
            }
            Fault::FollowerStopped => {
                let followers = self.ensemble.followers().await?;
                let follower = self.rng.choice(followers).context("no follower")?;
                self.stop_member(follower).await?;
            }
            Fault::AllRestarted => {
                let mut members: Vec<usize> = (0..self.ensemble.members().len()).collect();
                self.rng.shuffle(&mut members);
                for member in members {
                    self.ensemble.restart(member).await?;
                }
            }
            Fault::LeaderIsolated => {
                let leader = self.ensemble.leader().await?;
                self.ensemble.isolate(leader)?;
                self.for_longer_than_a_session().await;
                self.ensemble.heal(leader)?;
            }
            Fault::QuorumLost => self.lose_the_quorum().await?,
        }
        let ended = Instant::now();
        self.recovered(&WORKERS).await?;
        let after = ended.elapsed();
        self.ensemble.wait_until_all_serve().await?;
        Ok(after)
    }

    /// Has a worker hold every recipe, and keep it.
    async fn stay(&mut self, worker: &str) -> anyhow::Result<()> {
        self.processes.order(worker, Order::Stay).await?;
        let holds = |report: &Report, recipe: &str| {
            let pair = (recipe.to_owned(), worker.to_owned());
            report.owners.contains(&pair)
        };
        let stays = |report: &Report| RECIPES.iter().all(|recipe| holds(report, recipe.name));
        self.processes.until("held", stays).await
    }

    async fn stop(&mut self, worker: &'static str) -> anyhow::Result<()> {
        self.stay(worker).await?;
        self.processes.stop(worker)?;
        self.recovered(&others(worker)).await?;
        self.processes.resume(worker)?;
        // It reports the end of each hold that it had, without an order.
        let has_noticed = |report: &Report| report.lapsed.is_empty();
        self.processes.until("noticed", has_noticed).await?;
        self.processes.order(worker, Order::Work).await
    }

    async fn kill(&mut self, worker: &'static str) -> anyhow::Result<()> {
        self.stay(worker).await?;
        let leader = self.ensemble.leader().await?;
        self.processes.kill(worker).await?;
        self.ensemble.members_mut()[leader].kill().await?;
        self.recovered(&others(worker)).await?;
        self.ensemble.restart(leader).await?;
        self.processes.start(worker)
    }

    async fn stop_member(&mut self, member: usize) -> anyhow::Result<()> {
        self.ensemble.members()[member].pause()?;
        self.for_longer_than_a_session().await;
        self.ensemble.members()[member].resume()?;
        Ok(())
    }

    async fn lose_the_quorum(&mut self) -> anyhow::Result<()> {
        for worker in WORKERS {
            self.processes.order(worker, Order::Stay).await?;
        }
        let leader = self.ensemble.leader().await?;
        let other = (leader + 1) % self.ensemble.members().len();
        for member in [leader, other] {
            self.ensemble.members_mut()[member].kill().await?;
        }
        let is_lost = |report: &Report| report.owners.is_empty();
        self.processes.until("lost", is_lost).await?;
        for worker in WORKERS {
            self.processes.order(worker, Order::Work).await?;
        }
        self.for_longer_than_a_session().await;
        for member in [leader, other] {
            self.ensemble.restart(member).await?;
        }
        Ok(())
    }

    async fn for_longer_than_a_session(&mut self) {
        let more = self.rng.u32(0..=1_000);
        sleep(LONGER_THAN_A_SESSION + SESSION_TIMEOUT * more / 1_000).await;
    }

    /// Waits until every recipe has been granted from now on, and the partitions are balanced.
    async fn recovered(&mut self, workers: &[&str]) -> anyhow::Result<()> {
        let before = self.processes.report().grants;
        let more = |report: &Report, recipe: &str| report.grants.get(recipe) > before.get(recipe);
        let are_granted = |report: &Report| RECIPES.iter().all(|recipe| more(report, recipe.name));
        self.processes.until("granted", are_granted).await?;
        self.balanced(workers).await
    }

    /// Waits until these workers own all partitions, balanced to within one.
    async fn balanced(&mut self, workers: &[&str]) -> anyhow::Result<()> {
        let fair = PARTITIONS / workers.len()..=PARTITIONS.div_ceil(workers.len());
        let is_balanced = |report: &Report| {
            let owned = report
                .owners
                .iter()
                .filter(|(of, _)| of.starts_with("assignment/"));
            let owners: Vec<&str> = owned.map(|(_, owner)| &**owner).collect();
            let of = |worker: &&str| owners.iter().filter(|it| it == &worker).count();
            owners.len() == PARTITIONS && workers.iter().all(|worker| fair.contains(&of(worker)))
        };
        let what = format!("balanced among {workers:?}");
        let result = self.processes.until(&what, is_balanced).await;
        result.with_context(|| format!("after {:.2?}", self.began.elapsed()))
    }
}

fn others(worker: &str) -> Vec<&'static str> {
    WORKERS.into_iter().filter(|it| *it != worker).collect()
}
