//! The session handle, its supervisor, and the ZooKeeper sessions that the supervisor opens.

mod claim;
pub(crate) mod connect;
mod detach;
pub(crate) mod detached_session;
pub(crate) mod handle;
pub(crate) mod health;
mod leftovers;
mod probes;
mod resume;
pub(crate) mod state;
mod supervisor;
