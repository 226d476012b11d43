//! The admin port: faults over HTTP, with bodies in JSON.

mod administered;
mod answer;
mod bodies;
mod refused;
mod routes;
mod views;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use administered::Administered;

use super::error::StartError;
use super::listening::{address_of, listen};
use super::member::Member;
use crate::simulation::Simulation;

/// Takes requests on this port, if there is to be one, and tells the address.
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
    let administered = Administered {
        simulation,
        members,
    };
    tokio::spawn(serve(listener, administered));
    Ok(Some(address))
}

/// Answers requests until the runtime ends.
async fn serve(listener: TcpListener, administered: Administered) {
    let router = routes::router(Arc::new(administered));
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the admin port no longer answers");
    }
}
