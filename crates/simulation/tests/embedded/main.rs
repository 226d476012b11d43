//! The embedded server, as clients over TCP see it.

#[cfg(feature = "admin")]
mod admin;
mod any_requests;
mod conformance;
mod differential;
mod four_letter_words;
mod hostile_clients;
mod members;
mod server_options;
mod sessions;
mod start;
#[cfg(feature = "admin")]
mod web_pages;

use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer};
use zookeeper_recipes_suite::raw;

/// A server with the default options but for what this changes.
fn embedded(change: impl FnOnce(&mut EmbeddedOptions)) -> EmbeddedServer {
    let mut options = EmbeddedOptions::default();
    change(&mut options);
    EmbeddedServer::start_with(options).expect("it starts")
}

/// A server, and a client of it.
fn served() -> (EmbeddedServer, raw::Raw) {
    let server = embedded(|_| ());
    let client = raw::Raw::connect(&server.connect_string());
    (server, client)
}

/// Comes back to the session of an earlier client.
fn resume(address: &str, earlier: &raw::Raw) -> raw::Raw {
    let earlier = &earlier.connected;
    raw::Raw::resume(address, earlier.session_id, earlier.password.clone())
}
