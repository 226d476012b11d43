//! What an ensemble takes from the world around it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use uuid::Uuid;
use zookeeper_recipes_connection::{Network, Tcp};

/// Connections and a clock, random numbers, and tasks.
///
/// A simulation implements it, so that the ensemble and its connections are simulated as they are.
pub trait Surroundings: fmt::Debug + Send + Sync {
    /// Opens connections, and reads the clock.
    fn network(&self) -> Arc<dyn Network>;

    /// A random number that nobody can guess.
    fn random(&self) -> u128;

    /// Wraps a task before it is spawned.
    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()>;
}

/// The machine that this process runs on, and its network.
#[derive(Debug)]
pub(crate) struct ThisMachine {
    pub(crate) network: Arc<Tcp>,
}

impl Surroundings for ThisMachine {
    fn network(&self) -> Arc<dyn Network> {
        self.network.clone()
    }

    fn random(&self) -> u128 {
        Uuid::new_v4().as_u128()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        work
    }
}
