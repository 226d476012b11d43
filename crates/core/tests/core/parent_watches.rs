//! Waiters that watch the directory: [`WaitStrategy::Parent`].

use crate::support::*;

const LATE: Duration = Duration::from_secs(5);

fn queue(session: &Session) -> Queue {
    let options = QueueOptions::new().strategy(WaitStrategy::Parent);
    queue_with(session, "/locks/a", options)
}

#[tokio::test(start_paused = true)]
async fn waiter_on_the_directory_asks_for_nothing_while_nothing_changes() {
    let simulation = Simulation::default();
    let holder = queue(&simulated_session(&simulation, "two").await);
    let _hold = holder.acquire().await.expect("nobody is before it");
    let waiter = queue(&simulated_session(&simulation, "one").await);
    let waits = spawned(&waiter);
    sleep(LATE).await;
    let lists = || simulation.counters().requests(RequestKind::List);
    let before = lists();
    sleep(LATE).await;
    assert_eq!(lists(), before);
    assert!(!waits.is_finished());
}
