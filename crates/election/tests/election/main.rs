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

pub(crate) use std::cell::RefCell;
pub(crate) use std::convert::Infallible;
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use tokio::sync::watch;
pub(crate) use tokio::task::JoinHandle;
pub(crate) use tokio::time::{sleep, timeout};
pub(crate) use zookeeper_recipes_election::{
    ConnectOptions, Error, LeaderElection, LeaderState, Leadership, RunError, Session, StopWork,
    Term,
};
pub(crate) use zookeeper_recipes_simulation::{
    Fault, FaultKind, RequestKind, SimulatedProcess, Simulation,
};
pub(crate) use zookeeper_recipes_suite::simulated_session;

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
