//! Waiters that watch the directory: [`WaitStrategy::Parent`].

use std::time::Duration;

use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{Queue, QueueOptions, Session, WaitStrategy};
use zookeeper_recipes_simulation::{RequestKind, Simulation, SimulationOptions};
use zookeeper_recipes_suite::{eventually, simulated_session};

use crate::altered_ensemble::{Alterations, altered};
use crate::support::FIRST;

const LATE: Duration = Duration::from_secs(5);

fn queue(session: &Session) -> Queue {
    let options = QueueOptions::new().strategy(WaitStrategy::Parent);
    Queue::with_options(session, "/locks/a", FIRST, options).expect("a good path")
}

/// The thread stands still after the list. Meanwhile the connection breaks and returns.
#[tokio::test(start_paused = true)]
async fn reconnect_after_the_list_wakes_a_waiter_that_waits_later() {
    let simulation = Simulation::new(SimulationOptions::default());
    let holder = queue(&simulated_session(&simulation, "two").await);
    let holds = holder.acquire().await.expect("nobody is before it");
    let session = altered(
        &simulation,
        "one",
        Alterations {
            misses_children_for: Some(LATE),
            ..Alterations::default()
        },
    )
    .await;
    let waiter = queue(&session);
    let waits = tokio::spawn(async move { waiter.acquire().await });
    let administrator = simulation.administrator();
    let is_watched = || {
        administrator
            .watches()
            .iter()
            .any(|it| it.path == "/locks/a")
    };
    eventually("the waiter watches", async || is_watched()).await;
    simulation.process("one").disconnect();
    eventually("it is suspended", async || !session.is_connected()).await;
    session.wait_connected().await.expect("it reconnects");
    holds.release().await.expect("it is held");
    let woken = timeout(LATE * 4, waits).await.expect("it is woken");
    assert!(woken.expect("no panic").expect("its turn").is_held());
}

#[tokio::test(start_paused = true)]
async fn waiter_on_the_directory_asks_for_nothing_while_nothing_changes() {
    let simulation = Simulation::new(SimulationOptions::default());
    let holder = queue(&simulated_session(&simulation, "two").await);
    let _hold = holder.acquire().await.expect("nobody is before it");
    let waiter = queue(&simulated_session(&simulation, "one").await);
    let waits = tokio::spawn(async move { waiter.acquire().await });
    sleep(LATE).await;
    let lists = || simulation.counters().requests(RequestKind::List);
    let before = lists();
    sleep(LATE).await;
    assert_eq!(lists(), before);
    assert!(!waits.is_finished());
}
