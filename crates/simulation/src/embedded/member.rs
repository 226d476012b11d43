//! One server of an ensemble, as its connections see it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use zookeeper_recipes_protocol::DecodeError;

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

    /// Sends a frame of a client to the simulated server, and does what is due.
    pub(super) fn send(&self, id: ConnectionId, frame: &[u8]) -> Result<(), DecodeError> {
        self.shared.with(|world| world.send_frame(id, frame))?;
        self.shared.do_what_is_due();
        Ok(())
    }

    pub(super) fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
