//! Never two owners, and tokens in order, under faults of all kinds; and an owner after them.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zookeeper_recipes_assignment::AssignmentOptions;
use zookeeper_recipes_simulation::{FaultRates, Simulation, SimulationOptions};

use crate::support::Fleet;

const WORKERS: [&str; 4] = ["a", "b", "c", "d"];
const PARTITIONS: usize = 9;

/// All faults, but a session that a server expires before its time: no client can know of that.
fn rates() -> FaultRates {
    let seconds = Duration::from_secs;
    FaultRates {
        request_lost: 0.02,
        reply_lost: 0.02,
        outcome_hidden: 0.02,
        throttled: 0.02,
        event_late: 0.1,
        request_late: 0.05,
        reply_late: 0.05,
        late_by: seconds(2),
        disconnected: 0.05,
        forgotten: 0.1,
        blocked: 0.01,
        blocked_for: seconds(10),
        partitioned: 0.02,
        partitioned_for: seconds(20),
        asleep: 0.01,
        asleep_for: seconds(20),
        cut_off: 0.02,
        cut_off_for: seconds(10),
        one_way: 0.3,
        isolated: 0.01,
        isolated_for: seconds(10),
        elected: 0.02,
        elected_within: seconds(2),
        ..FaultRates::default()
    }
}

/// A fleet under faults for two minutes, with a worker that ends or dies now and then.
async fn run(seed: u64, options: AssignmentOptions) -> (Fleet, usize) {
    let simulation = Simulation::new(SimulationOptions {
        seed,
        servers: 3,
        clock_drift: 1_000,
        ..SimulationOptions::default()
    });
    let mut fleet = Fleet::new(simulation, PARTITIONS);
    fleet.options = options;
    for worker in WORKERS {
        fleet.start(worker).await;
    }
    fleet.balanced(&WORKERS).await;
    let first: usize = fleet.judge.grants().values().sum();
    fleet.simulation.faults().set_rates(rates());
    for round in 0..6 {
        for _ in 0..100 {
            sleep(Duration::from_millis(200)).await;
            fleet.check();
        }
        let worker = WORKERS[(seed as usize + round) % WORKERS.len()];
        match round % 2 {
            0 => fleet.kill(worker),
            _ => fleet.end(worker).await,
        }
        sleep(Duration::from_secs(3)).await;
        fleet.start(worker).await;
    }
    fleet.simulation.faults().stop();
    (fleet, first)
}

#[tokio::test(start_paused = true)]
async fn no_partition_has_two_owners_under_faults_and_each_has_one_after_them() {
    let mut grants = 0;
    for seed in 0..12 {
        let (fleet, first) = run(seed, AssignmentOptions::new()).await;
        fleet.balanced(&WORKERS).await;
        grants += fleet.judge.grants().values().sum::<usize>() - first;
    }
    // The faults took the partitions from their owners again and again.
    assert!(grants > 12 * 5 * PARTITIONS, "{grants}");
}

#[tokio::test(start_paused = true)]
async fn the_last_worker_owns_all_within_the_stated_bound_after_the_others_were_cut_off() {
    for seed in 0..10 {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            ..SimulationOptions::default()
        });
        let mut fleet = Fleet::new(simulation, PARTITIONS);
        for worker in ["a", "b", "c"] {
            fleet.start(worker).await;
        }
        fleet.balanced(&["a", "b", "c"]).await;
        let last = ["a", "b", "c"][seed as usize % 3];
        for worker in ["a", "b", "c"].into_iter().filter(|it| *it != last) {
            fleet.process(worker).partition(Duration::from_secs(60));
        }
        let began = Instant::now();
        fleet.balanced(&[last]).await;
        // The session timeout, two ticks of the servers, and time for two plans.
        let bound = Duration::from_secs(6 + 2 * 2 + 1);
        assert!(began.elapsed() < bound, "{:?}", began.elapsed());
        // Those that were cut off come back, and get their share.
        fleet.balanced(&["a", "b", "c"]).await;
    }
}
