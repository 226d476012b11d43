//! The admin port: faults over HTTP, with bodies in JSON.

mod admission;
mod bodies;
mod connections;
mod response;
mod routes;
mod views;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use admission::Admission;
use views::Administered;

use super::error::StartError;
use super::member::Member;
use super::port::{address_of, listen};
use crate::simulation::Simulation;

/// Takes requests on this port, if one is set, and returns the address.
pub(super) fn start(
    port: Option<u16>,
    simulation: Simulation,
    members: Vec<Arc<Member>>,
) -> Result<Option<SocketAddr>, StartError> {
    let Some(port) = port else {
        return Ok(None);
    };
    let listener = listen(port)?;
    let address = address_of(&listener)?;
    let port = address.port();
    let administered = Arc::new(Administered {
        simulation,
        members,
        backup: Mutex::new(None),
    });
    let router = routes::router(administered, Admission { port });
    tokio::spawn(connections::serve(listener, router));
    Ok(Some(address))
}
