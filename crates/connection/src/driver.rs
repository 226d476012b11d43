//! The driver: runs the state machine of a session on tokio.

pub(crate) mod clock;
pub(crate) mod connection;
pub(crate) mod network;
pub(crate) mod resolver;
pub(crate) mod shared;
pub(crate) mod task;
pub(crate) mod tcp;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod watch;
