//! What the driver asks of the world: connections and a clock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::Break;

/// A stream of bytes to and from a server.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that is being opened.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, Break>> + Send>>;

/// Opens connections, and reads the clock.
///
/// A simulation implements it over a network of its own.
pub trait Network: fmt::Debug + Send + Sync {
    /// Opens a connection to the host of this index.
    ///
    /// The host's name is looked up anew each time. `within` is the time after which the caller drops
    /// the future. A host with several addresses divides it among them.
    fn connect(&self, host: usize, within: Duration) -> Connecting;

    /// The time since some fixed moment. It never goes back.
    fn now(&self) -> Duration;
}
