//! The seam of the core crate, on top of a simulation.

pub(crate) mod ensemble;
mod scope;
mod session;
