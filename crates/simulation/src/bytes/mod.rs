//! Requests and replies as bytes of ZooKeeper's protocol.

pub(crate) mod replies;
pub(crate) mod requests;
mod values;
