//! The wire between clients and servers: bytes, and the network that carries them.

pub(crate) mod message;
pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod request;
