//! One ZooKeeper session: what this process knows of it, and its lease.

pub(crate) mod last_connection;
pub(crate) mod lease;
pub(crate) mod live_session;
#[cfg(test)]
#[path = "../tests/unit/scripted.rs"]
pub(crate) mod scripted;
pub(crate) mod short_leases;
