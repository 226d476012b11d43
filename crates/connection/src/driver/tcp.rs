//! Connections over TCP.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use crate::driver::clock;
use crate::driver::network::{Connecting, Network, Stream};
#[cfg(feature = "tls")]
use crate::driver::tls::{Handshake, TlsOptions, server_name};
use crate::error::Break;

/// A server's name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    /// The name, or the address without brackets.
    pub name: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Host {
    /// `name:port`, with brackets around an IPv6 address.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Host { name, port } = self;
        match name.contains(':') {
            true => write!(formatter, "[{name}]:{port}"),
            false => write!(formatter, "{name}:{port}"),
        }
    }
}

/// The addresses of a host.
type Addresses = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Connections over TCP, on the clock of the machine.
#[derive(Debug)]
pub struct Tcp {
    hosts: Vec<Host>,
    /// Looks a host's name up.
    look_up: fn(&Host) -> Addresses,
    #[cfg(feature = "tls")]
    tls: Option<TlsOptions>,
}

impl Tcp {
    /// Connects to these hosts.
    pub fn new(hosts: Vec<Host>) -> Tcp {
        Tcp {
            hosts,
            look_up: |host| {
                let (name, port) = (host.name.clone(), host.port);
                Box::pin(async move { Ok(lookup_host((name, port)).await?.collect()) })
            },
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
            server_name(&host.name)?;
        }
        self.tls = Some(options);
        Ok(self)
    }
}

impl Network for Tcp {
    fn connect(&self, host: usize, within: Duration) -> Connecting {
        let host = self.hosts.get(host).cloned();
        let look_up = self.look_up;
        #[cfg(feature = "tls")]
        let tls = self.tls.clone();
        Box::pin(async move {
            let host = host.ok_or(io::Error::from(io::ErrorKind::AddrNotAvailable))?;
            let addresses = look_up(&host);
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                let handshake = Handshake::new(tls, &host.name).await?;
                // The cause of a failure must be known before the caller gives up.
                let within = within * 9 / 10;
                let encrypted = |address, until| {
                    let handshake = handshake.clone();
                    async move { handshake.shake(open(address, until).await?, until).await }
                };
                return connect(addresses, within, encrypted).await;
            }
            connect(addresses, within, open).await
        })
    }

    fn now(&self) -> Duration {
        clock::now()
    }
}

/// Connects to the first address that accepts.
///
/// Each address gets an equal share of the time that the lookup of the name and the addresses
/// before it have left, so that one that does not answer keeps none of the others from being tried.
///
/// # Errors
///
/// The error of the last address, or [`Break::NoAddress`] if the name has none.
async fn connect<S: Stream + 'static, O: Future<Output = Result<S, Break>>>(
    addresses: Addresses,
    within: Duration,
    open: impl Fn(SocketAddr, Instant) -> O,
) -> Result<Box<dyn Stream>, Break> {
    let no_address = |error| Break::NoAddress(Arc::new(error));
    let end = Instant::now() + within;
    let addresses = addresses.await.map_err(no_address)?;
    let mut last = no_address(io::ErrorKind::AddrNotAvailable.into());
    for (address, untried) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let now = Instant::now();
        let share = (end - now) / u32::try_from(untried).unwrap_or(u32::MAX);
        match open(*address, now + share).await {
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects to this address.
async fn open(address: SocketAddr, until: Instant) -> Result<TcpStream, Break> {
    let connected = timeout_at(until, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // Two small requests must not wait for the acknowledgement of the first.
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Mutex;

    use tokio::net::TcpListener;

    use super::*;

    /// The address that the name has now.
    static ADDRESS: Mutex<Option<SocketAddr>> = Mutex::new(None);

    /// In Kubernetes, a member that is started again has another address.
    #[tokio::test]
    async fn name_is_looked_up_at_each_try() {
        let host = Host {
            name: "zk-0.zk".to_owned(),
            port: 2181,
        };
        let tcp = Tcp {
            look_up: |_| {
                let address = *ADDRESS.lock().expect("no panic");
                Box::pin(ready(Ok(address.into_iter().collect())))
            },
            ..Tcp::new(vec![host])
        };
        for _ in 0..3 {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            *ADDRESS.lock().expect("no panic") = listener.local_addr().ok();
            let connected = tcp.connect(0, Duration::from_secs(10)).await;
            connected.map(drop).expect("it accepts");
            listener.accept().await.expect("the connection");
        }
        *ADDRESS.lock().expect("no panic") = None;
        let connected = tcp.connect(0, Duration::from_secs(10)).await;
        assert!(matches!(connected.map(drop), Err(Break::NoAddress(_))));
    }
}
