//! Terms that end as soon as they began, on a simulated ensemble.

use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

async fn election(simulation: &Simulation) -> LeaderElection {
    let session = simulated_session(simulation, "p").await;
    LeaderElection::new(&session, "/leader", "one").expect("a good path")
}

#[tokio::test(start_paused = true)]
async fn work_that_returns_at_once_leads_ever_more_rarely() {
    let simulation = Simulation::new(SimulationOptions::default());
    let election = election(&simulation).await;
    let mut terms = 0;
    let work = async |_| {
        terms += 1;
        Ok::<(), std::io::Error>(())
    };
    let ran = election.run(sleep(Duration::from_secs(10)), work).await;
    ran.expect("it was shut down");
    // The pauses of the first second, then one a second.
    assert!((10..20).contains(&terms), "{terms} terms");
}

#[tokio::test(start_paused = true)]
async fn term_that_lasts_is_followed_by_the_next_at_once() {
    let simulation = Simulation::new(SimulationOptions::default());
    let election = election(&simulation).await;
    let mut terms = 0;
    let work = async |_| {
        terms += 1;
        sleep(Duration::from_secs(1)).await;
        Ok::<(), std::io::Error>(())
    };
    let ran = election.run(sleep(Duration::from_secs(20)), work).await;
    ran.expect("it was shut down");
    assert!(terms >= 19, "{terms} terms");
}
