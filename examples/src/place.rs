//! The way to the ensemble.

use std::time::Duration;

use zookeeper_recipes_core::{ConnectOptions, Error, Session};
use zookeeper_recipes_simulation::SimulatedProcess;

/// Where a process finds the ensemble.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// By this connect string, with the directory as its chroot.
    Server(String),
    Simulation(SimulatedProcess),
}

impl Place {
    pub(crate) async fn connect(&self, session_timeout: Duration) -> Result<Session, Error> {
        let options = ConnectOptions::new().session_timeout(session_timeout);
        match self {
            Place::Server(connect_string) => Session::connect_with(connect_string, options).await,
            Place::Simulation(process) => Session::open(process.ensemble(), options).await,
        }
    }
}
