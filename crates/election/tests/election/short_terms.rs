//! Terms that end as soon as they began, on a simulated ensemble.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_election::{LeaderElection, Term};
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
    let work = |_| {
        terms += 1;
        async { Ok::<(), std::io::Error>(()) }
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
    let work = |_| {
        terms += 1;
        async {
            sleep(Duration::from_secs(1)).await;
            Ok::<(), std::io::Error>(())
        }
    };
    let ran = election.run(sleep(Duration::from_secs(20)), work).await;
    ran.expect("it was shut down");
    assert!(terms >= 19, "{terms} terms");
}

/// The future of `run` is `Send`, whatever the closure captures.
#[tokio::test(start_paused = true)]
async fn run_can_be_spawned_with_work_that_captures_references_and_trait_objects() {
    let simulation = Simulation::new(SimulationOptions::default());
    let election = election(&simulation).await;
    let name: &'static str = "one";
    let store: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let running = tokio::spawn(async move {
        let work = async |term: Term| {
            store(name);
            term.ended().await;
            Ok::<(), std::io::Error>(())
        };
        election.run(sleep(Duration::from_secs(2)), work).await
    });
    let ran = running.await.expect("it does not panic");
    ran.expect("it was shut down");
}
