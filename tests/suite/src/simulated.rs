//! Sessions on the simulated ensemble.

use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_simulation::Simulation;

/// A session of a simulated process, with the default options.
pub async fn simulated_session(simulation: &Simulation, process: &str) -> Session {
    Session::open(simulation.ensemble(process), ConnectOptions::new())
        .await
        .expect("a session opens")
}
