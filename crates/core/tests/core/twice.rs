//! Creates that the server applies twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use zookeeper_recipes_core::{ConnectOptions, Queue, Session};
use zookeeper_recipes_simulation::{Change, Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

use crate::altered::{Alterations, Altered};
use crate::support::First;

/// The contender takes the first of its two znodes, and leaves neither behind.
#[tokio::test(start_paused = true)]
async fn contender_whose_create_is_applied_twice_keeps_nobody_waiting() {
    const TIME: Duration = Duration::from_secs(60);
    let simulation = Simulation::new(SimulationOptions::default());
    let ensemble = Altered {
        ensemble: simulation.ensemble("one"),
        alterations: Alterations {
            doubles_creates: true,
            ..Alterations::default()
        },
    };
    let session = Session::open(Arc::new(ensemble), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let other = simulated_session(&simulation, "other").await;
    let queue = |session| Queue::new(session, "/lock", First).expect("a good path");
    let hold = timeout(TIME, queue(&session).acquire()).await;
    let hold = hold.expect("in time").expect("it is free");
    let mut created = simulation
        .history()
        .into_iter()
        .filter_map(|commit| match commit.change {
            Change::Created { path, .. } => path.starts_with("/lock/").then_some(path),
            _ => None,
        });
    assert_eq!(Some(hold.node_path()), created.next().as_deref());
    assert!(created.next().is_some(), "it is applied twice");
    hold.release().await.expect("it is held");
    let next = timeout(TIME, queue(&other).acquire()).await;
    let next = next.expect("nobody is before it").expect("it is free");
    next.release().await.expect("it is held");
}
