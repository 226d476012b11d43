//! What an ensemble takes from the world around it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use std::time::Duration;

use uuid::Uuid;
use zookeeper_recipes_connection::{Network, Tcp, now};

use crate::invalid_input::InvalidInput;
#[cfg(feature = "tls")]
use crate::server::check_options::refused_tls;
use crate::server::options::ConnectOptions;

/// Connections and a clock, random numbers, and tasks.
///
/// A simulation implements it, so that the ensemble and its connections are simulated as they are.
pub trait Environment: fmt::Debug + Send + Sync {
    /// Opens connections with the options.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if one of the options cannot be used here.
    fn network(&self, options: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput>;

    /// The time since some fixed moment, by the clock of the ensemble.
    fn now(&self) -> Duration;

    /// A random number that nobody can guess.
    fn random(&self) -> u128;

    /// Wraps a task before it is spawned.
    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()>;
}

/// The machine that this process runs on, and its network.
#[derive(Debug)]
pub(crate) struct ThisMachine;

impl Environment for ThisMachine {
    fn network(&self, options: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput> {
        let network = Tcp::new();
        #[cfg(feature = "tls")]
        if let Some(tls) = &options.tls {
            let encrypted = network.encrypted(tls.clone());
            return Ok(Arc::new(encrypted.map_err(|error| refused_tls(&error))?));
        }
        let _ = options;
        Ok(Arc::new(network))
    }

    fn now(&self) -> Duration {
        now()
    }

    fn random(&self) -> u128 {
        Uuid::new_v4().as_u128()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        work
    }
}
