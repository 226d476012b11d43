//! Why a connection ends.

use std::io;
use std::time::Duration;

use zookeeper_recipes_protocol::{DecodeError, FrameError};

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// The client has closed it, or the server, or a fault.
    #[error("it was closed")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client sent {0}")]
    Frame(#[from] FrameError),
    #[error("the client sent a frame that is no message: {0}")]
    Message(#[from] DecodeError),
    #[error("the client sent nothing for {0:?}")]
    Silent(Duration),
    #[error("the client does not read: more than {0} bytes wait for it")]
    Full(usize),
    #[error("the client sent a request of an unknown type: {0}")]
    UnknownType(i32),
}
