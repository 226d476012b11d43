//! Runs of contenders on a simulated ensemble.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::{FutureExt, join, join_all, select};
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{ConnectOptions, Error, Hold, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_models::handoff::{HandoffModel, Kind, Label, Party};
use zookeeper_recipes_rwlock::{RwLock, WriteHold};
use zookeeper_recipes_simulation::{FaultRates, Simulation, SimulationOptions, Trace};

use crate::observations::LOCK;

pub(crate) const CONTENDERS: usize = 3;
/// The contender that wants a read lock.
const READER: usize = CONTENDERS - 1;
/// The contender that comes back, or that drops many holds at once.
const REGULAR: usize = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contended {
    Lock,
    /// A read/write lock, of which the last contender wants a read lock. The others may downgrade.
    ReadWrite,
    /// A leadership, which an operator transfers now and then.
    Leadership,
}

impl Contended {
    pub(crate) fn model(self) -> HandoffModel {
        match self {
            Contended::Lock => HandoffModel::new(CONTENDERS, Label::Lock),
            Contended::Leadership => HandoffModel::new(CONTENDERS, Label::Candidate),
            Contended::ReadWrite => HandoffModel {
                downgrades: true,
                ..HandoffModel::new(CONTENDERS, Label::Write)
            }
            .with(READER, Party::new(Kind::Library, Label::Read)),
        }
    }

    async fn acquire(self, session: &Session, index: usize) -> Result<Held, Error> {
        match self {
            Contended::Lock => {
                let lock = ExclusiveLock::new(session, LOCK)?;
                lock.acquire().await.map(Held::Hold)
            }
            Contended::Leadership => {
                let election = LeaderElection::new(session, LOCK, index.to_string())?;
                let leadership = election.acquire().await?;
                Ok(Held::Hold(leadership.into_hold()))
            }
            Contended::ReadWrite => {
                let lock = RwLock::new(session, LOCK)?;
                match index {
                    READER => lock.read().acquire().await.map(Held::Hold),
                    _ => lock.write().acquire().await.map(Held::Write),
                }
            }
        }
    }
}

enum Held {
    Hold(Hold),
    Write(WriteHold),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// All contenders wait, hold, release and give up.
    Contend,
    /// One contender holds again and again, mostly with nobody else in the queue.
    ComeBack,
    /// One session drops so many holds at once that it deletes several znodes in one transaction.
    DropAtOnce,
}

/// A run, but for its seed.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) contended: Contended,
    pub(crate) workload: Workload,
    pub(crate) rates: FaultRates,
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = match self.rates == FaultRates::default() {
            true => "without faults",
            false => "under faults",
        };
        write!(
            formatter,
            "{:?}, {:?}, {faults}",
            self.contended, self.workload
        )
    }
}

impl Run {
    /// A run without faults in which all contenders contend.
    pub(crate) fn new(contended: Contended) -> Run {
        Run {
            contended,
            workload: Workload::Contend,
            rates: FaultRates::default(),
        }
    }

    pub(crate) fn of(self, workload: Workload) -> Run {
        Run { workload, ..self }
    }

    pub(crate) fn under(self, rates: FaultRates) -> Run {
        Run { rates, ..self }
    }

    pub(crate) fn trace(&self, seed: u64) -> Trace {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let simulation = Simulation::new(SimulationOptions {
                seed,
                servers: 2,
                follower_lag: Duration::ZERO..=Duration::from_millis(20),
                trace_limit: 100_000,
                ..SimulationOptions::default()
            });
            simulation.faults().set_rates(self.rates.clone());
            self.play(&simulation, Rng::with_seed(seed)).await;
            simulation.trace()
        })
    }

    async fn play(&self, simulation: &Simulation, mut rng: Rng) {
        let contended = self.contended;
        let mut contend = |index| contend(simulation, contended, index, rng.fork());
        match (self.workload, contended) {
            (Workload::Contend, Contended::Leadership) => {
                let contenders = join_all((0..CONTENDERS).map(contend));
                let operator = transfer(simulation, rng.fork());
                select(pin!(contenders), pin!(operator)).await;
            }
            (Workload::Contend, _) => drop(join_all((0..CONTENDERS).map(contend)).await),
            (Workload::ComeBack, _) => {
                let visitor = visit(simulation, contended, rng.fork());
                join(come_back(simulation, contended, rng.fork()), visitor).await;
            }
            (Workload::DropAtOnce, _) => {
                let other = contend(REGULAR + 1);
                join(drop_at_once(simulation, rng.fork()), other).await;
            }
        }
    }
}

async fn open(simulation: &Simulation, index: usize) -> Session {
    let ensemble = simulation.ensemble(&index.to_string());
    let session = Session::open(ensemble, ConnectOptions::new());
    session.await.expect("a session")
}

/// A random time of at most so many milliseconds.
fn max_hold(milliseconds: u64, rng: &mut Rng) -> Duration {
    Duration::from_millis(rng.u64(0..=milliseconds))
}

async fn contend(simulation: &Simulation, contended: Contended, index: usize, mut rng: Rng) {
    let session = open(simulation, index).await;
    for _ in 0..4 {
        sleep(max_hold(60, &mut rng)).await;
        hold_once(simulation, contended, (&session, index), &mut rng).await;
        if rng.u8(..8) == 0 {
            delete_by_hand(simulation, &mut rng);
        }
    }
    session.close().await;
}

/// Waits for the hold, and releases it. The contender may give up.
async fn hold_once(
    simulation: &Simulation,
    contended: Contended,
    (session, index): (&Session, usize),
    rng: &mut Rng,
) {
    simulation.remark(format!("asks {index}"));
    let patience = Duration::from_millis(rng.u64(20..=300));
    let Ok(Ok(held)) = timeout(patience, contended.acquire(session, index)).await else {
        simulation.remark(format!("leaves {index}"));
        return;
    };
    simulation.remark(format!("granted {index}"));
    sleep(max_hold(30, rng)).await;
    let hold = match held {
        Held::Write(write) if rng.bool() => {
            let read = write.downgrade().await;
            sleep(max_hold(30, rng)).await;
            read
        }
        Held::Write(write) => Ok(write.into_hold()),
        Held::Hold(hold) => Ok(hold),
    };
    simulation.remark(format!("leaves {index}"));
    if let Ok(hold) = hold {
        // A hold that is lost is over.
        drop(hold.release().await);
    }
}

/// Holds again and again.
async fn come_back(simulation: &Simulation, contended: Contended, mut rng: Rng) {
    let session = open(simulation, REGULAR).await;
    for _ in 0..16 {
        hold_once(simulation, contended, (&session, REGULAR), &mut rng).await;
    }
    session.close().await;
}

/// Comes between the holds of the contender that comes back.
async fn visit(simulation: &Simulation, contended: Contended, mut rng: Rng) {
    let index = REGULAR + 1;
    let session = open(simulation, index).await;
    sleep(Duration::from_millis(100)).await;
    for _ in 0..2 {
        sleep(max_hold(200, &mut rng)).await;
        hold_once(simulation, contended, (&session, index), &mut rng).await;
    }
    session.close().await;
}

/// With so many deletions under way, a session gathers further ones.
///
/// These are 16 single deletions, and 4 transactions of 64: see `hold/deletion.rs` of the core.
const DELETIONS: usize = 16 + 4 * 64;

/// Drops a hold and the next attempt while all of the session's deletions are under way.
///
/// The session's holds of other locks occupy its deletions. So the session gathers the deletions of
/// the hold and of the attempt.
async fn drop_at_once(simulation: &Simulation, mut rng: Rng) {
    let session = open(simulation, REGULAR).await;
    for round in 0..4 {
        let others = (0..DELETIONS).map(|other| {
            let lock = ExclusiveLock::new(&session, format!("/other/{other}")).expect("a path");
            async move { lock.acquire().await.expect("a lock that nobody else wants") }
        });
        let others = join_all(others).await;
        simulation.remark(format!("asks {REGULAR}"));
        let Ok(hold) = Contended::Lock.acquire(&session, REGULAR).await else {
            // An operator has deleted the znode.
            simulation.remark(format!("leaves {REGULAR}"));
            continue;
        };
        simulation.remark(format!("granted {REGULAR}"));
        sleep(max_hold(30, &mut rng)).await;
        // The create of the attempt is sent before the deletions.
        let mut attempt = pin!(Contended::Lock.acquire(&session, REGULAR));
        let granted = attempt.as_mut().now_or_never();
        assert!(granted.is_none(), "a grant without an answer");
        simulation.remark(format!("leaves {REGULAR}"));
        drop((others, hold));
        simulation.remark(format!("asks {REGULAR}"));
        // The first attempts are dropped before the reply to their create.
        let patience = if round < 2 { 0 } else { rng.u64(0..=10) };
        let held = timeout(Duration::from_millis(patience), attempt).await;
        if let Ok(Ok(_)) = &held {
            simulation.remark(format!("granted {REGULAR}"));
        }
        simulation.remark(format!("leaves {REGULAR}"));
        drop(held);
    }
    session.close().await;
}

/// Names the last candidate as the successor, again and again.
async fn transfer(simulation: &Simulation, mut rng: Rng) {
    let session = Session::open(simulation.ensemble("operator"), ConnectOptions::new());
    let session = session.await.expect("a session");
    let election = LeaderElection::new(&session, LOCK, "operator").expect("a path");
    let administrator = simulation.administrator();
    let directory = || {
        let found = administrator.tree().into_iter().find(|it| it.path == LOCK);
        found.map(|it| ((it.stat.czxid, it.stat.version), it.data))
    };
    loop {
        sleep(Duration::from_millis(rng.u64(0..=40))).await;
        let before = directory().map(|(version, _)| version);
        let candidates = administrator.tree().into_iter();
        let candidates = candidates.filter(|it| it.stat.ephemeral_owner != 0);
        let Some(last) = candidates.max_by_key(|it| it.stat.czxid) else {
            continue;
        };
        // The candidate may have gone meanwhile.
        let id = String::from_utf8_lossy(&last.data);
        drop(election.transfer_to(&id).await);
        let after = directory().filter(|(version, _)| Some(*version) != before);
        let data = after.map(|(_, data)| data).unwrap_or_default();
        let data = String::from_utf8_lossy(&data);
        let successor = data
            .lines()
            .find_map(|line| line.strip_prefix("successor "));
        if let Some(successor) = successor {
            simulation.remark(format!("named {successor}"));
        }
    }
}

fn delete_by_hand(simulation: &Simulation, rng: &mut Rng) {
    let administrator = simulation.administrator();
    if let Some(name) = rng.choice(administrator.children(LOCK)) {
        // Its owner may have deleted it meanwhile.
        drop(administrator.delete(&format!("{LOCK}/{name}")));
    }
}
