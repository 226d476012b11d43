//! The model and the code are held together: what the recipes do on a simulated ensemble, the model
//! of the handoff can do, too.
//!
//! The trace of a run shows the transactions, the requests with their replies, and the events. The
//! callers add what they ask for and what they are granted.

mod observations;

use std::pin::pin;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::{join_all, select};
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{ConnectOptions, Error, Hold, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_models::handoff::{HandoffModel, Kind, Label, Observed, Party, Replay};
use zookeeper_recipes_rwlock::{RwLock, WriteHold};
use zookeeper_recipes_simulation::{FaultRates, Simulation, SimulationOptions, Trace};

use observations::{LOCK, observations};

const CONTENDERS: usize = 3;
/// The contender that wants a read lock.
const READER: usize = CONTENDERS - 1;
const SEEDS: u64 = 4;

/// What the contenders contend for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contended {
    /// An exclusive lock.
    Lock,
    /// A read/write lock, of which the last contender wants a read lock. The others may downgrade.
    ReadWrite,
    /// A leadership, which an operator transfers now and then.
    Leadership,
}

impl Contended {
    fn model(self) -> HandoffModel {
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

    /// Waits for a lock.
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

/// What a contender holds.
enum Held {
    Hold(Hold),
    Write(WriteHold),
}

/// Runs contenders that wait, hold, release and give up.
fn run(contended: Contended, seed: u64, rates: FaultRates) -> Trace {
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
        simulation.faults().set_rates(rates);
        let mut rng = Rng::with_seed(seed);
        let contenders =
            (0..CONTENDERS).map(|index| contend(&simulation, contended, index, rng.fork()));
        let contenders = join_all(contenders);
        match contended {
            Contended::Leadership => {
                let operator = transfer(&simulation, rng.fork());
                select(pin!(contenders), pin!(operator)).await;
            }
            _ => drop(contenders.await),
        }
        simulation.trace()
    })
}

async fn contend(simulation: &Simulation, contended: Contended, index: usize, mut rng: Rng) {
    let ensemble = simulation.ensemble(&index.to_string());
    let session = Session::open(ensemble, ConnectOptions::new());
    let session = session.await.expect("a session");
    for _ in 0..4 {
        sleep(Duration::from_millis(rng.u64(0..=60))).await;
        simulation.remark(format!("asks {index}"));
        let patience = Duration::from_millis(rng.u64(20..=300));
        let hold = timeout(patience, contended.acquire(&session, index)).await;
        if let Ok(Ok(held)) = hold {
            simulation.remark(format!("granted {index}"));
            sleep(Duration::from_millis(rng.u64(0..=30))).await;
            let hold = match held {
                Held::Write(write) if rng.bool() => {
                    let read = write.downgrade().await;
                    sleep(Duration::from_millis(rng.u64(0..=30))).await;
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
        } else {
            simulation.remark(format!("leaves {index}"));
        }
        if rng.u8(..8) == 0 {
            delete_by_hand(simulation, &mut rng);
        }
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

/// Deletes the znode of a contender.
fn delete_by_hand(simulation: &Simulation, rng: &mut Rng) {
    let administrator = simulation.administrator();
    if let Some(name) = rng.choice(administrator.children(LOCK)) {
        // Its owner may have deleted it meanwhile.
        drop(administrator.delete(&format!("{LOCK}/{name}")));
    }
}

/// The first observation that the model cannot take, and the most moments of the run at once.
fn refused(contended: Contended, observed: &[Observed]) -> (Option<usize>, usize) {
    let mut replay = Replay::new(contended.model());
    let mut most = 0;
    for (at, observation) in observed.iter().enumerate() {
        if !replay.take(observation) {
            return (Some(at), most);
        }
        most = most.max(replay.moments());
    }
    (None, most)
}

fn assert_replayed(contended: Contended, rates: &FaultRates) {
    let (mut steps, mut grants, mut moments) = (0, 0, 0);
    for seed in 0..SEEDS {
        let trace = run(contended, seed, rates.clone());
        let observed = observations(&trace);
        let (refused, most) = refused(contended, &observed);
        if let Some(at) = refused {
            let before = &observed[at.saturating_sub(40)..=at];
            panic!("seed {seed}: the model cannot take the last of {before:#?}\n{trace}");
        }
        let granted = observed
            .iter()
            .filter(|it| matches!(it, Observed::Granted(_)));
        steps += observed.len();
        grants += granted.count();
        moments = moments.max(most);
    }
    println!("{steps} observations, {grants} grants, at most {moments} moments at once");
    assert!(grants > 0);
}

#[test]
fn what_the_election_does_the_model_can_do() {
    assert_replayed(Contended::Leadership, &FaultRates::default());
}

#[test]
fn what_the_election_does_under_faults_the_model_can_do() {
    assert_replayed(Contended::Leadership, &faults());
}

/// The contender that deletes its znode though its caller still asks for the hold.
fn steps_back(observed: &[Observed]) -> Option<(usize, usize)> {
    let mut asks = [false; CONTENDERS];
    observed.iter().enumerate().find_map(|(at, it)| match it {
        Observed::Asks(index) => {
            asks[*index] = true;
            None
        }
        Observed::Leaves(index) => {
            asks[*index] = false;
            None
        }
        Observed::Deleted { contender, .. } => asks[*contender].then_some((at, *contender)),
        _ => None,
    })
}

#[test]
fn a_leader_past_the_successor_is_refused() {
    let election = Contended::Leadership;
    let mut runs = (0..).map(|seed| observations(&run(election, seed, FaultRates::default())));
    let stepping_back = runs.find_map(|observed| Some((steps_back(&observed)?, observed)));
    let ((at, candidate), mut observed) = stepping_back.expect("a candidate steps back");
    observed[at] = Observed::Granted(candidate);
    assert_eq!(refused(election, &observed).0, Some(at));
}

fn faults() -> FaultRates {
    FaultRates {
        request_lost: 0.01,
        reply_lost: 0.01,
        disconnected: 0.3,
        event_late: 0.1,
        late_by: Duration::from_millis(30),
        ..FaultRates::default()
    }
}

#[test]
fn what_the_lock_does_the_model_can_do() {
    assert_replayed(Contended::Lock, &FaultRates::default());
}

#[test]
fn what_the_lock_does_under_faults_the_model_can_do() {
    assert_replayed(Contended::Lock, &faults());
}

#[test]
fn what_the_read_write_lock_does_the_model_can_do() {
    assert_replayed(Contended::ReadWrite, &FaultRates::default());
}

#[test]
fn what_the_read_write_lock_does_under_faults_the_model_can_do() {
    assert_replayed(Contended::ReadWrite, &faults());
}

/// The observations of a run without faults, and the place of a grant after a wait.
fn wait() -> (Vec<Observed>, usize) {
    let runs =
        (0..SEEDS).map(|seed| observations(&run(Contended::Lock, seed, FaultRates::default())));
    let mut waits = runs.filter_map(|observed| {
        let is_grant = |at: &usize| {
            matches!(observed[*at], Observed::Granted(_))
                && matches!(observed[at - 1], Observed::Notified(_, _, false))
        };
        let at = (1..observed.len()).find(is_grant)?;
        Some((observed, at))
    });
    waits.next().expect("a wait that a marked release ends")
}

#[test]
fn a_grant_before_the_event_is_refused() {
    let (mut observed, at) = wait();
    observed.swap(at - 1, at);
    assert_eq!(refused(Contended::Lock, &observed).0, Some(at - 1));
}

#[test]
fn a_grant_without_its_list_is_refused() {
    let (mut observed, _) = wait();
    let is_list = |it: &Observed| matches!(it, Observed::Listed(..));
    observed.retain(|it| !is_list(it) && !matches!(it, Observed::Sent(..)));
    let granted = observed
        .iter()
        .position(|it| matches!(it, Observed::Granted(_)));
    let refused = refused(Contended::Lock, &observed).0;
    assert!(refused.is_some_and(|at| Some(at) <= granted), "{refused:?}");
}
