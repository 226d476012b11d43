//! Random schedules: faults, workers that come, end and die, and orders, all by a seed.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_assignment::{
    AssignmentOperator, AssignmentOptions, Partition, Partitions, Routing,
};
use zookeeper_recipes_simulation::{FaultRates, Simulation, SimulationOptions};

use crate::support::{Fleet, Judge, PATH};

const WORKERS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// How many seeds run. The environment can ask for more.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("ASSIGNMENT_SEED").unwrap_or(0);
    first..first + number("ASSIGNMENT_SEEDS").unwrap_or(10)
}

fn milliseconds(rng: &mut Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.u64(range))
}

fn options(rng: &mut Rng) -> AssignmentOptions {
    let graces = [0, 0, 10_000, 30_000];
    let grace = Duration::from_millis(graces[rng.usize(..graces.len())]);
    let options = AssignmentOptions::new()
        .grace(grace)
        .max_moves([1, 3, 32][rng.usize(..3)])
        .drain_at_most(milliseconds(rng, 1_000..5_000))
        .next_within(milliseconds(rng, 5_000..10_000))
        .plan_interval(milliseconds(rng, 1..500));
    match rng.bool() {
        true => options,
        false => {
            let pause = milliseconds(rng, 1..3_000);
            options.warm(move |_| sleep(pause))
        }
    }
}

/// Rates of all faults but the expiry before its time, of which no client can know.
fn rates(rng: &mut Rng) -> FaultRates {
    let mut rate = |most: f64| if rng.bool() { rng.f64() * most } else { 0.0 };
    FaultRates {
        request_lost: rate(0.05),
        reply_lost: rate(0.05),
        outcome_hidden: rate(0.05),
        throttled: rate(0.05),
        event_late: rate(0.3),
        request_late: rate(0.2),
        reply_late: rate(0.2),
        late_by: Duration::from_secs(2),
        disconnected: rate(0.2),
        forgotten: rate(0.3),
        blocked: rate(0.03),
        blocked_for: Duration::from_secs(10),
        partitioned: rate(0.05),
        partitioned_for: Duration::from_secs(20),
        asleep: rate(0.03),
        asleep_for: Duration::from_secs(20),
        cut_off: rate(0.05),
        cut_off_for: Duration::from_secs(10),
        one_way: rate(1.0),
        isolated: rate(0.03),
        isolated_for: Duration::from_secs(10),
        elected: rate(0.05),
        elected_within: Duration::from_secs(2),
        ..FaultRates::default()
    }
}

/// Work of a random kind: it drains at once or slowly, ignores that it should, or returns early.
async fn work(worker: &'static str, judge: Judge, owned: Partition, mut rng: Rng) {
    judge.granted(worker, &owned);
    let kind = rng.u8(..8);
    let until = milliseconds(&mut rng, 1..20_000);
    let mut worked = Duration::ZERO;
    let pause = Duration::from_millis(100);
    loop {
        assert!(owned.is_held(), "{worker} works on {}", owned.id());
        match kind {
            0 if worked > until => return,
            1 => {}
            2 if owned.is_draining() => {
                sleep(Duration::from_millis(700)).await;
                return;
            }
            _ if owned.is_draining() => return,
            _ => {}
        }
        let _ = match kind {
            1 => timeout(pause, std::future::pending()).await,
            _ => timeout(pause, owned.draining()).await,
        };
        worked += pause;
    }
}

struct Schedule {
    fleet: Fleet,
    rng: Rng,
    operator: AssignmentOperator,
    running: Vec<&'static str>,
    names: Vec<String>,
}

impl Schedule {
    async fn start(&mut self, worker: &'static str) {
        let judge = self.fleet.judge.clone();
        let seed = self.rng.u64(..);
        let task = move |owned: Partition| {
            let token = owned.fencing_token().get().unsigned_abs();
            work(worker, judge.clone(), owned, Rng::with_seed(seed ^ token))
        };
        self.fleet.start_with(worker, task).await;
        self.running.push(worker);
    }

    /// One step of the schedule.
    async fn step(&mut self) {
        let any = WORKERS[self.rng.usize(..WORKERS.len())];
        let partition = self.names[self.rng.usize(..self.names.len())].clone();
        let given = match self.rng.u8(..12) {
            0 | 1 if self.running.contains(&any) && self.running.len() > 1 => {
                self.running.retain(|it| *it != any);
                return self.fleet.kill(any);
            }
            2 | 3 if self.running.contains(&any) && self.running.len() > 1 => {
                self.running.retain(|it| *it != any);
                return self.fleet.end(any).await;
            }
            0..=5 if !self.running.contains(&any) => return self.start(any).await,
            6 => self.operator.drain(any).await,
            7 => self.operator.undrain(any).await,
            8 => self.operator.pin(&partition, any).await,
            9 => self.operator.unpin(&partition).await,
            10 => self.operator.freeze().await,
            11 => self.operator.thaw().await,
            _ => self.set_partitions().await,
        };
        given.expect("the session is open");
    }

    async fn set_partitions(&mut self) -> Result<(), zookeeper_recipes_assignment::Error> {
        let count = self.rng.usize(3..12);
        self.names = (0..count).map(|it| format!("p{}", it * 7 % 11)).collect();
        self.names.sort();
        self.names.dedup();
        self.fleet.partitions = Partitions::named(self.names.clone());
        self.operator
            .set_partitions(self.fleet.partitions.clone())
            .await
    }

    /// Takes all orders back, and starts all workers.
    async fn settle(&mut self) {
        self.fleet.simulation.faults().stop();
        self.operator.thaw().await.expect("open");
        for worker in WORKERS {
            self.operator.undrain(worker).await.expect("open");
            if !self.running.contains(&worker) {
                self.start(worker).await;
            }
        }
        for number in 0..12 {
            let name = format!("p{number}");
            self.operator.unpin(&name).await.expect("open");
        }
    }
}

async fn run(seed: u64) -> usize {
    let mut rng = Rng::with_seed(seed);
    let simulation = Simulation::new(SimulationOptions {
        seed,
        servers: [1, 3, 5][rng.usize(..3)],
        clock_drift: 1_000,
        ..SimulationOptions::default()
    });
    let mut fleet = Fleet::new(simulation, 1);
    fleet.options = options(&mut rng);
    let session = fleet.session("operator").await;
    let operator = AssignmentOperator::new(&session, PATH).expect("a good path");
    let mut routing = operator.routing().await.expect("open");
    let rates = rates(&mut rng);
    let (running, names) = (Vec::new(), Vec::new());
    let mut schedule = Schedule {
        fleet,
        rng,
        operator,
        running,
        names,
    };
    schedule.set_partitions().await.expect("open");
    schedule.start("a").await;
    schedule.fleet.simulation.faults().set_rates(rates);
    for _ in 0..30 {
        let pause = milliseconds(&mut schedule.rng, 1..8_000);
        sleep(pause).await;
        schedule.fleet.check();
        schedule.step().await;
    }
    schedule.settle().await;
    let fleet = &mut schedule.fleet;
    // Work of one kind returns early now and then, so the balance comes and goes.
    fleet.balanced(&WORKERS).await;
    let agrees = |routing: &Routing, judge: &Judge| {
        let shown = routing
            .iter()
            .map(|(id, owner)| (id.to_owned(), owner.worker.clone()));
        shown.eq(judge.owners())
    };
    fleet
        .until("shown", |judge| agrees(&routing.borrow_and_update(), judge))
        .await;
    for worker in WORKERS {
        fleet.end(worker).await;
    }
    // A session that a server has forgotten lives until its timeout.
    let operator = session.id().map(|id| id.0);
    let administrator = fleet.simulation.administrator();
    let is_left = |owner: i64| owner != 0 && Some(owner) != operator;
    let nothing_left = |_: &Judge| {
        let tree = administrator.tree();
        !tree.iter().any(|node| is_left(node.stat.ephemeral_owner))
    };
    fleet.until("deleted", nothing_left).await;
    fleet.judge.grants().values().sum()
}

#[tokio::test(start_paused = true)]
async fn promises_are_kept_under_random_schedules() {
    let mut grants = 0;
    for seed in seeds() {
        println!("ASSIGNMENT_SEED={seed}");
        grants += run(seed).await;
    }
    assert!(grants > 100, "{grants}");
}
