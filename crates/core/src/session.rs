//! The session handle, its supervisor, and the ZooKeeper sessions that the supervisor opens.

pub(crate) mod current;
pub(crate) mod handle;
pub(crate) mod health;
pub(crate) mod keeper;
pub(crate) mod lease;
pub(crate) mod leave;
pub(crate) mod live;
pub(crate) mod opening;
pub(crate) mod own_znodes;
#[cfg(test)]
pub(crate) mod scripted;
pub(crate) mod state;
pub(crate) mod supervisor;
pub(crate) mod unsupported;
pub(crate) mod writes;
