//! The admin port: faults over HTTP, with bodies in JSON.

mod bodies;
mod routes;
mod views;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use views::Administered;
use zookeeper_recipes_http::{Admission, guarded, serve};

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
    let router = guarded(routes::router(administered), Admission::loopback(port));
    tokio::spawn(serve(listener, router, std::future::pending()));
    Ok(Some(address))
}
