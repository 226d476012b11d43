//! Why an embedded server does not start.

use std::io;

use zookeeper_recipes_core::Refusal;

/// Why an embedded server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process has the port.
    #[error("port {port} on 127.0.0.1 is in use by another process")]
    PortInUse {
        /// The port.
        port: u16,
    },
    /// The port cannot be listened on for another reason.
    #[error("cannot listen on port {port} of 127.0.0.1")]
    Listen {
        /// The port.
        port: u16,
        /// The error of the system.
        source: io::Error,
    },
    /// The clock of the tokio runtime is paused, as in a test with `start_paused`.
    #[error(
        "the clock of the tokio runtime is paused, so clients over TCP would time out at once: call \
         tokio::time::resume() first, or use `Simulation` without the embedded server"
    )]
    PausedClock,
    /// The thread of the server cannot be started.
    #[error("cannot start the server's thread")]
    Thread(#[source] io::Error),
    /// A znode to begin with cannot be created.
    #[error("cannot create {path:?} to begin with: {refusal}")]
    Znode {
        /// The path of the znode.
        path: String,
        /// Why the server refused to create it.
        refusal: Refusal,
    },
}
