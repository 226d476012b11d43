//! A look at the outcome of a create that the server throttles.

use std::time::Duration;

use tokio::time::timeout;
use zookeeper_recipes_core::{Acl, AuthId, Directories, Permission};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

use crate::support;

/// If the look ended the attempt, the next attempt would wait for its own znode to go.
#[tokio::test(start_paused = true)]
async fn create_without_an_answer_is_found_though_the_looks_are_throttled() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    let znode = support::begin_single(&session).await;
    let faults = simulation.faults();
    faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Create));
    for nth in 1..=4 {
        let throttled = Fault::new(FaultKind::Throttled).on(RequestKind::Transact);
        faults.inject(throttled.nth(nth));
    }
    let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    let create = znode.create(b"", &everyone, Directories::Container);
    let created = timeout(Duration::from_secs(60), create).await;
    let created = created.expect("in time").expect("it is found");
    assert!(created.is_some(), "it is its own");
    assert_eq!(faults.waiting(), 0, "all were met");
}
