//! One ZooKeeper session: what this process knows of it, and its lease.

pub(crate) mod lease;
pub(crate) mod live_session;
#[cfg(test)]
pub(crate) mod scripted;
pub(crate) mod unsupported;
