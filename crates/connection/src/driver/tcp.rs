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
use crate::driver::tls::{Handshake, TlsOptions};
use crate::error::Break;
use crate::session::host::Host;

/// Connections over TCP, on the clock of the machine. The system looks names up.
///
/// Each look-up has a thread of its own, for which neither a runtime nor the process waits.
#[derive(Debug)]
pub struct Tcp {
    resolver: Arc<Resolver>,
    #[cfg(feature = "tls")]
    tls: Option<TlsOptions>,
}

impl Tcp {
    /// Connections that are not encrypted.
    pub fn new() -> Tcp {
        Tcp::with(Resolver::new())
    }

    fn with(resolver: Resolver) -> Tcp {
        Tcp {
            resolver: Arc::new(resolver),
            #[cfg(feature = "tls")]
            tls: None,
        }
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

impl Default for Tcp {
    fn default() -> Tcp {
        Tcp::new()
    }
}

impl Network for Tcp {
    fn connect(&self, host: &Host, address: SocketAddr, within: Duration) -> Connecting {
        #[cfg(feature = "tls")]
        if let Some(tls) = self.tls.clone() {
            let name = host.name.clone();
            return Box::pin(async move {
                // The cause of a failure must be known before the caller gives up.
                let until = Instant::now() + within * 9 / 10;
                let handshake = Handshake::new(tls, &name).await?;
                let encrypted = handshake.shake(open(address, until).await?, until).await?;
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
async fn open(address: SocketAddr, until: Instant) -> Result<TcpStream, Break> {
    let connected = timeout_at(until, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // Two small requests must not wait for the acknowledgement of the first.
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;
    use zookeeper_recipes_protocol::{ConnectRequest, ConnectResponse, Reply, ReplyBody, xid};

    use super::*;
    use crate::{Avoided, Config, Connection, State};

    const LONG: Duration = Duration::from_secs(30);

    /// The address that the name has now.
    type Zone = Arc<Mutex<Option<SocketAddr>>>;

    /// A network in which all names have the address of the zone.
    fn named(zone: &Zone) -> Tcp {
        let zone = zone.clone();
        Tcp::with(Resolver::by(move |_| {
            Ok(zone.lock().expect("no panic").into_iter().collect())
        }))
    }

    /// Listens at a new address, which the names have from now on.
    async fn listen(zone: &Zone) -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        *zone.lock().expect("no panic") = Some(address);
        listener
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
        if request.session_id == 0 {
            Reply::new(xid::PING, 1, ReplyBody::Empty).encode_frame(&mut bytes);
        }
        stream.write_all(&bytes).await.expect("it is read");
        stream.flush().await.expect("it is read");
        request.session_id
    }

    /// In Kubernetes, a member that is started again has another address.
    ///
    /// `accept` does what the server does before the first byte of the protocol.
    async fn session_follows_its_name(
        name: &str,
        zone: &Zone,
        tcp: Tcp,
        accept: impl AsyncFn(TcpStream) -> Box<dyn Stream>,
    ) {
        let name = name.to_owned();
        let config = Config {
            hosts: vec![Host { name, port: 2181 }],
            session_timeout: LONG,
            auth: Vec::new(),
            reply_limit: 1 << 20,
            seed: 7,
            removals: Avoided::new(),
        };
        let mut listener = listen(zone).await;
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
            listener = listen(zone).await;
            drop(stream);
        }
        assert_eq!(asked, [0, 77, 77]);
    }

    #[tokio::test]
    async fn session_reconnects_to_the_address_that_its_name_has_then() {
        let (zone, accept) = (Zone::default(), async |stream| Box::new(stream) as _);
        session_follows_its_name("zk", &zone, named(&zone), accept).await;
    }

    #[cfg(feature = "tls")]
    #[tokio::test]
    async fn encrypted_session_reconnects_to_the_address_that_its_name_has_then() {
        use tokio_rustls::TlsAcceptor;
        use tokio_rustls::rustls::{ServerConfig, crypto};

        let (name, zone) = ("zk", Zone::default());
        let issued = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("known versions")
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], issued.signing_key.into());
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("a good certificate")));
        let options = TlsOptions::new().roots(issued.cert.pem().as_bytes());
        let tcp = named(&zone).encrypted(options).expect("good options");
        let accept = async |stream| {
            let encrypted = acceptor.accept(stream).await;
            Box::new(encrypted.expect("a good handshake")) as _
        };
        session_follows_its_name(name, &zone, tcp, accept).await;
    }
}
