//! The far end of a connection whose client is not simulated.

use std::fmt;

use super::message::Downward;

/// A client outside of the simulation, at the far end of a connection.
pub(crate) trait Peer: fmt::Debug + Send + Sync {
    /// Gets what a server has sent.
    fn hear(&self, message: Downward);

    /// The connection is broken.
    fn hang_up(&self);
}
