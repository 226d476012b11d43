//! Tests of `src/driver/tcp.rs`.

use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use zookeeper_recipes_protocol::{ConnectRequest, ConnectResponse, Reply, ReplyBody, xid};

use super::*;
use crate::{Config, Connection, ConnectionState, UnsupportedRequests};

const LONG: Duration = Duration::from_secs(30);

/// The address that the name has now.
type Zone = Arc<Mutex<Option<SocketAddr>>>;

/// A network in which all names have the address of the zone.
fn named(zone: &Zone) -> Tcp {
    let (mut tcp, zone) = (Tcp::new(), zone.clone());
    let look_up = move |_: &Host| Ok(zone.lock().expect("no panic").into_iter().collect());
    tcp.resolver = Arc::new(Resolver::by(look_up));
    tcp
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
        unsupported: UnsupportedRequests::default(),
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
        let connected = states.wait_for(|state| matches!(state, ConnectionState::Connected { .. }));
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
