//! The clients' side of the network: connections, what is sent on them, and what breaks them.
//!
//! Clients are those of the library, over [`surroundings`] and a [`stream`] of bytes, and those that
//! connect over TCP. Both are [peers](crate::wire::peer::Peer) to the simulation.

pub(crate) mod action;
mod losing;
pub(crate) mod peers;
mod ports;
mod rolling;
mod sending;
mod standing_still;
pub(crate) mod stream;
pub(crate) mod surroundings;
pub(crate) mod world;
