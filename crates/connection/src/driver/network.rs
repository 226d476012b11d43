//! What the driver asks of the world: connections and a clock.

use std::fmt;
use std::future::{Future, ready};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::DisconnectReason;
use crate::session::host::Host;

/// A stream of bytes to and from a server.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that is being opened.
pub type Connecting =
    Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, DisconnectReason>> + Send>>;

/// The addresses of a name that is being looked up.
pub type LookingUp =
    Pin<Box<dyn Future<Output = Result<Vec<SocketAddr>, DisconnectReason>> + Send>>;

/// Opens connections, looks names up, and reads the clock.
///
/// A simulation implements it over a network of its own.
pub trait Network: fmt::Debug + Send + Sync {
    /// Opens a connection to this address of a host.
    ///
    /// `within` is the time after which the caller drops the future.
    fn connect(&self, host: &Host, address: SocketAddr, within: Duration) -> Connecting;

    /// Looks the name of a host up. Hosts that are addresses are never looked up.
    ///
    /// The future may take any time. By default no name has an address.
    fn look_up(&self, host: &Host) -> LookingUp {
        let problem = format!("{} is not an address", host.name);
        let problem = io::Error::new(io::ErrorKind::Unsupported, problem);
        Box::pin(ready(Err(DisconnectReason::NoAddress(Arc::new(problem)))))
    }

    /// The addresses that a name had at its last look-up, if it is remembered.
    fn known(&self, _: &Host) -> Vec<SocketAddr> {
        Vec::new()
    }

    /// The time since some fixed moment. It never goes back.
    fn now(&self) -> Duration;
}
