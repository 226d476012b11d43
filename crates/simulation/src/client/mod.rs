//! The clients' side of the network: processes, their connections, what clients send, and faults.
//!
//! Clients are those of the library, over [`environment`] and a [`stream`] of bytes, and those that
//! connect over TCP. Both are [peers](crate::wire::network::Peer) to the simulation.

pub(crate) mod connections;
pub(crate) mod environment;
pub(crate) mod process;
mod process_faults;
mod requests;
pub(crate) mod stream;
pub(crate) mod turns;
pub(crate) mod world;
