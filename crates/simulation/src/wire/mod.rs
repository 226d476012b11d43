//! The wire between clients and servers: requests, answers, and the network that carries them.

pub(crate) mod answer;
pub(crate) mod message;
pub(crate) mod network;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod write;
