//! Connections over TCP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::driver::clock;
use crate::driver::network::{Connecting, LookingUp, Network, Stream};
use crate::driver::resolver::Resolver;
#[cfg(feature = "tls")]
use crate::driver::tls::{self, TlsOptions};
use crate::error::DisconnectReason;
use crate::session::host::Host;

/// Connections over TCP, on the clock of the machine. The system looks names up.
///
/// Each look-up has a thread of its own, for which neither a runtime nor the process waits.
#[derive(Debug, Default)]
pub struct Tcp {
    resolver: Arc<Resolver>,
    #[cfg(feature = "tls")]
    tls: Option<TlsOptions>,
}

impl Tcp {
    /// Connections that are not encrypted.
    pub fn new() -> Tcp {
        Tcp::default()
    }

    /// Encrypts each connection. No byte of the protocol is sent without.
    ///
    /// # Errors
    ///
    /// An error that names the file of a certificate or a key that cannot be used.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn encrypted(mut self, options: TlsOptions) -> io::Result<Tcp> {
        options.check()?;
        self.tls = Some(options);
        Ok(self)
    }
}

impl Network for Tcp {
    fn connect(&self, host: &Host, address: SocketAddr, within: Duration) -> Connecting {
        #[cfg(feature = "tls")]
        if let Some(options) = self.tls.clone() {
            let name = host.name.clone();
            return Box::pin(async move {
                // The cause of a failure must be known before the caller gives up.
                let until = Instant::now() + within * 9 / 10;
                let encrypted = tls::connect(options, &name, open(address, until), until).await?;
                Ok(Box::new(encrypted) as Box<dyn Stream>)
            });
        }
        #[cfg(not(feature = "tls"))]
        let _ = host;
        Box::pin(async move {
            let stream = open(address, Instant::now() + within).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn look_up(&self, host: &Host) -> LookingUp {
        self.resolver.look_up(host)
    }

    fn known(&self, host: &Host) -> Vec<SocketAddr> {
        self.resolver.known(host)
    }

    fn now(&self) -> Duration {
        clock::now()
    }
}

/// Connects to this address.
async fn open(address: SocketAddr, until: Instant) -> Result<TcpStream, DisconnectReason> {
    let connected = timeout_at(until, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // Two small requests must not wait for the acknowledgement of the first.
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
#[path = "../../tests/unit/tcp.rs"]
mod tests;
