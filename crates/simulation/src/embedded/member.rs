//! One server of an ensemble, as its connections see it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::figures::Figures;
use super::options::EmbeddedOptions;
use super::outlet::Outlet;
use crate::engine::shared::Shared;
use crate::wire::network::ConnectionId;

/// One server of an ensemble.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) shared: Arc<Shared>,
    /// Which server of the simulation it is.
    pub(super) server: usize,
    pub(super) address: SocketAddr,
    pub(super) options: EmbeddedOptions,
    pub(super) started: Instant,
    pub(super) figures: Arc<Mutex<Figures>>,
    connections: Mutex<BTreeMap<ConnectionId, Arc<Outlet>>>,
}

impl Member {
    pub(super) fn new(
        shared: Arc<Shared>,
        server: usize,
        address: SocketAddr,
        options: EmbeddedOptions,
    ) -> Member {
        Member {
            shared,
            server,
            address,
            options,
            started: Instant::now(),
            figures: Arc::default(),
            connections: Mutex::default(),
        }
    }

    pub(super) fn connections(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Arc<Outlet>>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
