//! What observers are told, on a simulated ensemble.

use std::time::Duration;

use futures_util::{Stream, StreamExt};
use tokio::time::{sleep, timeout};
use zookeeper_recipes_election::{Error, Leader, LeaderElection, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

fn election(session: &Session, id: &str) -> LeaderElection {
    LeaderElection::new(session, "/leader", id).expect("a good path")
}

/// Waits until the observer tells of a leader with this id.
async fn until_leader(
    observer: &mut (impl Stream<Item = Result<Option<Leader>, Error>> + Unpin),
    id: &str,
) {
    let led = observer.any(|told| async move {
        let leader = told.expect("nothing is refused");
        leader.is_some_and(|leader| leader.id == id)
    });
    let led = timeout(Duration::from_secs(10), led).await;
    assert!(led.expect("told in time"), "the stream goes on");
}

#[tokio::test(start_paused = true)]
async fn observer_is_told_of_no_leader_that_was_replaced_before_it_began() {
    for seed in 0..50 {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            session_timeout: Duration::from_secs(30),
            follower_lag: Duration::from_millis(100)..=Duration::from_millis(1_500),
            ..SimulationOptions::default()
        });
        let watching = simulated_session(&simulation, "observer").await;
        let first = election(&simulated_session(&simulation, "first").await, "first");
        let first = first.acquire().await.expect("nobody else wants it");
        first.release().await.expect("it leads");
        let second = election(&simulated_session(&simulation, "second").await, "second");
        let second = second.acquire().await.expect("nobody else wants it");
        let told = election(&watching, "nobody").observe().next().await;
        let told = told.expect("the stream begins").expect("it may look");
        let told = told.map(|leader| leader.fencing_token);
        assert_eq!(told, Some(second.fencing_token()), "seed {seed}");
    }
}

/// A candidate comes at any moment of an observer's first look.
async fn assert_a_candidate_that_comes_is_told_of(directory_stands: bool) {
    for step in 0..200 {
        let simulation = Simulation::new(SimulationOptions {
            seed: step,
            ..SimulationOptions::default()
        });
        let candidate = election(&simulated_session(&simulation, "candidate").await, "one");
        if directory_stands {
            let before = candidate.acquire().await.expect("nobody else wants it");
            before.release().await.expect("it leads");
        }

        let watching = simulated_session(&simulation, "observer").await;
        let observing = tokio::spawn(async move {
            let mut observer = election(&watching, "nobody").observe();
            until_leader(&mut observer, "one").await;
        });
        sleep(Duration::from_micros(100 * step)).await;
        let leadership = candidate.acquire().await.expect("nobody else wants it");
        observing.await.expect("it is told");
        drop(leadership);
    }
}

#[tokio::test(start_paused = true)]
async fn observer_that_looks_as_a_candidate_comes_is_told_of_it() {
    assert_a_candidate_that_comes_is_told_of(true).await;
}

#[tokio::test(start_paused = true)]
async fn observer_that_looks_as_the_directory_comes_is_told_of_its_first_candidate() {
    assert_a_candidate_that_comes_is_told_of(false).await;
}
