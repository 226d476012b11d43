//! Connections over TCP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::driver::clock;
use crate::driver::network::{Connecting, Network, Stream};
#[cfg(feature = "tls")]
use crate::driver::tls::{TlsOptions, encrypt, server_name};
use crate::error::Break;

/// A server's name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    /// The name, or the address without brackets.
    pub name: String,
    /// The port.
    pub port: u16,
}

/// Connections over TCP, on the clock of the machine.
#[derive(Debug)]
pub struct Tcp {
    hosts: Vec<Host>,
    #[cfg(feature = "tls")]
    tls: Option<TlsOptions>,
}

impl Tcp {
    /// Connects to these hosts.
    pub fn new(hosts: Vec<Host>) -> Tcp {
        Tcp {
            hosts,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Encrypts each connection. No byte of the protocol is sent without.
    ///
    /// # Errors
    ///
    /// An error that names the file of a certificate or a key that cannot be used, or the host that
    /// no certificate can be valid for.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn encrypted(mut self, options: TlsOptions) -> io::Result<Tcp> {
        options.check()?;
        for host in &self.hosts {
            let problem = |error| io::Error::other(format!("{}: {error}", host.name));
            server_name(&host.name).map_err(problem)?;
        }
        self.tls = Some(options);
        Ok(self)
    }
}

impl Network for Tcp {
    fn connect(&self, host: usize, within: Duration) -> Connecting {
        let host = self.hosts.get(host).cloned();
        #[cfg(feature = "tls")]
        let tls = self.tls.clone();
        Box::pin(async move {
            let host = host.ok_or(io::Error::from(io::ErrorKind::AddrNotAvailable))?;
            let stream = connect(&host, within).await?;
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                let stream = encrypt(&tls, &host.name, stream).await?;
                return Ok(Box::new(stream) as Box<dyn Stream>);
            }
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn now(&self) -> Duration {
        clock::now()
    }
}

/// Connects to the first address of `host` that accepts.
///
/// Each address gets an equal share of the time, so that one that does not answer keeps none of
/// the others from being tried.
///
/// # Errors
///
/// The error of the last address, or [`Break::NoAddress`] if the name has none.
async fn connect(host: &Host, within: Duration) -> Result<TcpStream, Break> {
    let no_address = |error| Break::NoAddress(Arc::new(error));
    let addresses = lookup_host((host.name.as_str(), host.port)).await;
    let addresses: Vec<_> = addresses.map_err(no_address)?.collect();
    let share = within / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let mut last = no_address(io::ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Two small requests must not wait for the acknowledgement of the first.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = error.into(),
            Err(_) => last = io::Error::from(io::ErrorKind::TimedOut).into(),
        }
    }
    Err(last)
}
