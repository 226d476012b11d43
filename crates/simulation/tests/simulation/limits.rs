//! A simulation reports when more happens than its limits allow.

use crate::support::{connect, create_ephemeral, milliseconds};
use futures_util::FutureExt;
use std::time::Duration;
use zookeeper_recipes_simulation::{Limits, Simulation, SimulationOptions};

fn limited(change: impl FnOnce(&mut Limits)) -> Simulation {
    let mut limits = Limits::default();
    change(&mut limits);
    Simulation::new(SimulationOptions {
        network_delay: Duration::ZERO..=Duration::ZERO,
        commit_delay: Duration::ZERO..=Duration::ZERO,
        limits,
        ..Default::default()
    })
}

async fn are_exceeded(simulation: &Simulation, request: bool) -> String {
    let session = connect(simulation, "a").await;
    let spinning = async {
        loop {
            match request {
                true => drop(session.list("/").await),
                false => tokio::task::yield_now().await,
            }
            simulation.counters();
        }
    };
    tokio::select! {
        biased;
        text = simulation.exceeds_its_limits() => text,
        () = spinning => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn are_exceeded_where_the_clock_stands_still() {
    let simulation = limited(|limits| limits.at_one_instant = 1_000);
    let text = are_exceeded(&simulation, true).await;
    assert!(text.contains("1000 things were done"), "{text}");
    assert_eq!(simulation.now(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "something never ends")]
async fn are_exceeded_by_what_lets_nobody_else_run() {
    let simulation = limited(|limits| limits.at_one_instant = 1_000);
    loop {
        simulation.counters();
    }
}

#[tokio::test(start_paused = true)]
async fn are_exceeded_by_too_many_requests() {
    let simulation = limited(|limits| limits.requests_per_second = 100);
    let text = are_exceeded(&simulation, true).await;
    assert_eq!(text, "a sent 101 requests within a second");
}

#[tokio::test(start_paused = true)]
async fn are_exceeded_where_it_takes_too_long() {
    let simulation = limited(|limits| limits.wall_clock = milliseconds(5));
    let text = are_exceeded(&simulation, false).await;
    assert!(text.contains("have taken more than 5ms"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn are_exceeded_by_too_many_changes() {
    let simulation = limited(|limits| limits.changes = 2);
    let session = connect(&simulation, "a").await;
    create_ephemeral(&session, "/a").await;
    assert!(simulation.exceeds_its_limits().now_or_never().is_none());
    create_ephemeral(&session, "/b").await;
    let text = simulation.exceeds_its_limits().await;
    assert_eq!(text, "3 changes were committed");
}
