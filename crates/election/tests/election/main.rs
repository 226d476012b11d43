//! The election: its promises on real servers and on a simulated ensemble.

mod conformance;
mod health;
mod leaders;
mod real_server;
mod rules;
mod short_terms;
mod shutdown;
mod transfers;
mod watching;

use std::time::Duration;

use zookeeper_recipes_election::{ConnectOptions, LeaderElection, Session};
use zookeeper_recipes_simulation::{SimulatedProcess, Simulation};
use zookeeper_recipes_suite::simulated_session;

const TIMEOUT: Duration = Duration::from_secs(10);

/// A simulation whose processes ask for a session timeout of [`TIMEOUT`].
fn simulation() -> Simulation {
    Simulation::with(|it| it.session_timeout = TIMEOUT)
}

async fn open(process: &SimulatedProcess) -> Session {
    let options = ConnectOptions::new().session_timeout(TIMEOUT);
    let session = Session::open(process.ensemble(), options).await;
    session.expect("a session opens")
}

fn election(session: &Session, id: &str) -> LeaderElection {
    LeaderElection::new(session, "/leader", id).expect("a good path")
}

/// An election in a session of its own, in the process of this name.
async fn election_in(simulation: &Simulation, id: &str) -> LeaderElection {
    election(&simulated_session(simulation, id).await, id)
}
