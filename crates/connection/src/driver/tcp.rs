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
    use std::collections::BTreeMap;
    use std::future::ready;
    use std::sync::Mutex;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;
    use zookeeper_recipes_protocol::{ConnectRequest, ConnectResponse};

    use super::*;
    use crate::{Avoided, Config, Connection, State};

    const LONG: Duration = Duration::from_secs(30);

    /// The address that each name has now.
    static ADDRESSES: Mutex<BTreeMap<String, SocketAddr>> = Mutex::new(BTreeMap::new());

    fn named(name: &str) -> Tcp {
        let name = name.to_owned();
        Tcp {
            look_up: |host| {
                let addresses = ADDRESSES.lock().expect("no panic");
                let address = addresses.get(&host.name).copied();
                Box::pin(ready(Ok(address.into_iter().collect())))
            },
            ..Tcp::new(vec![Host { name, port: 2181 }])
        }
    }

    /// Listens at a new address, which the name has from now on.
    async fn listen(name: &str) -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut addresses = ADDRESSES.lock().expect("no panic");
        addresses.insert(name.to_owned(), address);
        listener
    }

    /// In Kubernetes, a member that is started again has another address.
    #[tokio::test]
    async fn name_is_looked_up_at_each_try() {
        let (name, tcp) = ("tries.zk", named("tries.zk"));
        for _ in 0..3 {
            let listener = listen(name).await;
            let connected = tcp.connect(0, LONG).await;
            connected.map(drop).expect("it accepts");
            listener.accept().await.expect("the connection");
        }
        ADDRESSES.lock().expect("no panic").remove(name);
        let connected = tcp.connect(0, LONG).await;
        assert!(matches!(connected.map(drop), Err(Break::NoAddress(_))));
    }

    #[tokio::test]
    async fn small_requests_are_sent_without_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stream = open(address, Instant::now() + LONG).await;
        assert!(stream.expect("it accepts").nodelay().expect("a socket"));
    }

    /// Grants a session, and returns the id of the session that was asked for.
    async fn grant(stream: &mut dyn Stream) -> i64 {
        let length = stream.read_u32().await.expect("a length") as usize;
        let mut request = vec![0; length];
        stream.read_exact(&mut request).await.expect("a handshake");
        let request = ConnectRequest::decode(&request).expect("a handshake");
        let response = ConnectResponse {
            protocol_version: 0,
            timeout: request.timeout,
            session_id: 77,
            password: vec![1; 16],
            read_only: Some(false),
        };
        let mut bytes = Vec::new();
        response.encode_frame(&mut bytes);
        stream.write_all(&bytes).await.expect("it is read");
        stream.flush().await.expect("it is read");
        request.session_id
    }

    /// `accept` does what the server does before the first byte of the protocol.
    async fn session_follows_its_name(
        tcp: Tcp,
        accept: impl AsyncFn(TcpStream) -> Box<dyn Stream>,
    ) {
        let name = tcp.hosts[0].name.clone();
        let config = Config {
            hosts: 1,
            session_timeout: LONG,
            auth: Vec::new(),
            reply_limit: 1 << 20,
            seed: 7,
            removals: Avoided::new(),
        };
        let mut listener = listen(&name).await;
        let (connection, driver) = Connection::new(Arc::new(tcp), config);
        tokio::spawn(driver);
        let mut states = connection.states();
        let mut asked = Vec::new();
        for _ in 0..3 {
            let accepted = timeout(LONG, listener.accept()).await;
            let (stream, _) = accepted.expect("in time").expect("a connection");
            let mut stream = accept(stream).await;
            asked.push(grant(&mut *stream).await);
            let connected = states.wait_for(|state| matches!(state, State::Connected { .. }));
            drop(timeout(LONG, connected).await.expect("in time"));
            listener = listen(&name).await;
            drop(stream);
        }
        assert_eq!(asked, [0, 77, 77]);
    }

    #[tokio::test]
    async fn session_reconnects_to_the_address_that_its_name_has_then() {
        session_follows_its_name(named("moves.zk"), async |stream| Box::new(stream) as _).await;
    }

    #[cfg(feature = "tls")]
    #[tokio::test]
    async fn encrypted_session_reconnects_to_the_address_that_its_name_has_then() {
        use tokio_rustls::TlsAcceptor;
        use tokio_rustls::rustls::{ServerConfig, crypto};

        let name = "encrypted.zk";
        let issued = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("known versions")
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], issued.signing_key.into());
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("a good certificate")));
        let options = TlsOptions::new().roots(issued.cert.pem().as_bytes());
        let tcp = named(name).encrypted(options).expect("good options");
        let accept = async |stream| {
            let encrypted = acceptor.accept(stream).await;
            Box::new(encrypted.expect("a good handshake")) as _
        };
        session_follows_its_name(tcp, accept).await;
    }
}
