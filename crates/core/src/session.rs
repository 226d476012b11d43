//! The session handle, its supervisor, and the ZooKeeper sessions that the supervisor opens.

pub(crate) mod connect;
pub(crate) mod handle;
mod leftovers;
mod probes;
pub(crate) mod state;
mod supervisor;
