//! Waiters that watch the directory: [`WaitStrategy::Parent`].

use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_core::{Queue, QueueOptions, Session, WaitStrategy};
use zookeeper_recipes_simulation::{RequestKind, Simulation};
use zookeeper_recipes_suite::simulated_session;

use crate::support::FIRST;

const LATE: Duration = Duration::from_secs(5);

fn queue(session: &Session) -> Queue {
    let options = QueueOptions::new().strategy(WaitStrategy::Parent);
    Queue::with_options(session, "/locks/a", FIRST, options).expect("a good path")
}

#[tokio::test(start_paused = true)]
async fn waiter_on_the_directory_asks_for_nothing_while_nothing_changes() {
    let simulation = Simulation::default();
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
