//! The port of a server that clients outside of the simulation connect to.

use std::fmt;

/// The port of a server.
pub(crate) trait Port: fmt::Debug + Send + Sync {
    /// Refuses connections from now on.
    fn close(&self);

    /// Takes connections again.
    fn open(&self);
}
