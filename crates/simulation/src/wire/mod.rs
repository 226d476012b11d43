//! What passes between clients and servers: requests, answers, and the network that carries them.

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod greeting;
pub(crate) mod message;
pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod peer;
pub(crate) mod port;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod watch_kind;
pub(crate) mod write;
