//! The client's end of a connection.

use std::fmt;

use super::message::Downward;

/// The client's end of a connection.
pub(crate) trait Peer: fmt::Debug + Send + Sync {
    /// Gets what a server has sent.
    fn hear(&self, message: Downward);

    /// The connection is broken.
    fn hang_up(&self);
}
