//! The interface of the core crate to a server, on top of a simulation.

pub(crate) mod ensemble;
mod session;
