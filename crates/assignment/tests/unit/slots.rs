//! The partitions of a worker, by one plan after the other.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_simulation::Simulation;

use super::*;
use crate::assignment::Assignment;
use crate::owned::Owns;
use crate::partition::Partition;
use crate::partitions::Partitions;
use crate::sessions::Sessions;
use crate::work::Works;
use crate::worker::ENTRIES;

#[tokio::test(start_paused = true)]
async fn partition_that_is_planned_again_while_its_task_ends_is_owned_again() {
    let session = Simulation::default().session("a").await.expect("open");
    let assignment = Assignment::new(&session, "/app/queues", Partitions::numbered(1), "a");
    let assignment = assignment.expect("good input");
    let work = async |owned: Partition| -> Result<(), Infallible> {
        owned.draining().await;
        Ok(())
    };
    let (owns, mut owned) = watch::channel(Owns::new());
    let mut slots = Slots::new(Arc::new(Worker {
        sessions: Sessions::default(),
        owns,
        entries: Arc::new(Semaphore::new(ENTRIES)),
        works: Works::new(session.ensemble().clone(), work),
        assignment,
    }));
    let plan = BTreeMap::from([(Arc::from("0"), Directive::Own)]);
    for _ in 0..3 {
        slots.follow(plan.clone());
        let is_owned = owned.wait_for(|owned| owned.len() == 1);
        tokio::select! {
            error = slots.run() => panic!("{error}"),
            is_owned = timeout(Duration::from_secs(10), is_owned) => drop(is_owned.expect("owned")),
        }
        slots.follow(BTreeMap::new());
        // The task ends, and nobody looks.
        sleep(Duration::from_secs(1)).await;
        assert!(owned.borrow().is_empty());
    }
}
