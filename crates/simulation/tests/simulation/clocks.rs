//! Clocks begin anywhere and drift.

use crate::support::{TICK, servers};
use std::time::Duration;
use tokio::time::sleep;
use zookeeper_recipes_simulation::Simulation;

#[tokio::test(start_paused = true)]
async fn begin_anywhere_and_run_at_their_own_rate() {
    let simulation = Simulation::with(|it| it.clock_drift = 10_000);
    let mut rates = Vec::new();
    for process in 0..20 {
        let ensemble = simulation.ensemble(&format!("p{process}"));
        let began = ensemble.now();
        assert_eq!(simulation.ensemble(&format!("p{process}")).now(), began);
        sleep(Duration::from_secs(1_000)).await;
        let rate = (ensemble.now() - began).as_millis();
        assert!((990_000..=1_010_000).contains(&rate), "{rate}");
        rates.push(rate);
    }
    assert!(rates.iter().any(|rate| *rate < 997_000), "{rates:?}");
    assert!(rates.iter().any(|rate| *rate > 1_003_000), "{rates:?}");
}

#[tokio::test(start_paused = true)]
async fn are_all_one_by_default() {
    let simulation = servers(1, 1);
    sleep(TICK).await;
    assert_eq!(simulation.ensemble("a").now(), simulation.now());
}
