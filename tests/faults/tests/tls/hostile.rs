//! Servers that break the rules of TLS in the handshake, each with its cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::server::TlsStream;
use zookeeper_recipes_connection::{DisconnectReason, RequestError};
use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, ReadRequest, Reply, ReplyBody, Request, RequestBody,
};
use zookeeper_recipes_suite::eventually;
use zookeeper_recipes_suite::tls::{After, Authority, Issued, Tap, trusting};

use crate::session;

/// What a server does when a client has said hello.
#[derive(Clone)]
enum Server {
    /// It does its part of the handshake.
    Shakes(Arc<ServerConfig>),
    /// It says this.
    Says(Vec<u8>),
}

/// The version of TLS 1.1, and a version that hides that the server knows TLS 1.3.
const TLS_1_1: [u8; 2] = [3, 2];
const TLS_1_2: [u8; 2] = [3, 3];
/// The end of the random bytes of a server that was made to speak TLS 1.2.
const DOWNGRADED: &[u8; 8] = b"DOWNGRD\x01";

/// The first record of a server of this version.
fn server_hello(version: [u8; 2]) -> Vec<u8> {
    let mut hello = vec![22, version[0], version[1], 0, 42];
    hello.extend([2, 0, 0, 38, version[0], version[1]]);
    hello.extend([7; 24]);
    hello.extend(DOWNGRADED);
    // No session, a cipher, and no compression.
    hello.extend([0, 0xc0, 0x2f, 0]);
    hello
}

fn alert(description: u8) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, description]
}

impl Server {
    async fn serve(self, mut stream: TcpStream, shaken: &AtomicUsize) -> std::io::Result<()> {
        match self {
            Server::Shakes(config) => {
                let mut stream = TlsAcceptor::from(config).accept(stream).await?;
                shaken.fetch_add(1, Ordering::Relaxed);
                stream.read_to_end(&mut Vec::new()).await?;
            }
            Server::Says(bytes) => {
                let _ = stream.read(&mut [0; 4 << 10]).await?;
                stream.write_all(&bytes).await?;
                stream.shutdown().await?;
                stream.read_to_end(&mut Vec::new()).await?;
            }
        }
        Ok(())
    }
}

/// Runs a server. Returns its port, and the number of the handshakes that a client has done.
async fn start(server: Server) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let shaken = Arc::new(AtomicUsize::new(0));
    let counted = shaken.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The client ends it.
            let _ = server.clone().serve(stream, &counted).await;
        }
    });
    (port, shaken)
}

/// The next frame of a client.
async fn frame(stream: &mut TlsStream<TcpStream>) -> std::io::Result<Vec<u8>> {
    let mut frame = vec![0; stream.read_u32().await? as usize];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}

/// Somebody puts a reply into an established connection as it is. The connection breaks with the cause,
/// and the session continues over the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_forged_in_a_session_breaks_its_connection_alone() {
    const SESSION: i64 = 77;
    let authority = Authority::new("root");
    let shown = authority.issue(&["localhost"]).server_of(&[&TLS13], None);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let connection = session("localhost", port, trusting(&authority));
    // The session that each connection asks for.
    let grant = async || {
        let (stream, _) = listener.accept().await?;
        let mut stream = TlsAcceptor::from(shown.clone()).accept(stream).await?;
        let request = frame(&mut stream).await?;
        let request = ConnectRequest::decode(&request).expect("a handshake");
        let response = ConnectResponse {
            protocol_version: 0,
            timeout: request.timeout,
            session_id: SESSION,
            password: vec![1; 16],
            read_only: Some(false),
        };
        let mut bytes = Vec::new();
        response.encode_frame(&mut bytes);
        stream.write_all(&bytes).await?;
        stream.flush().await?;
        std::io::Result::Ok((request.session_id, stream))
    };
    let served = async {
        let (asked, mut stream) = grant().await?;
        assert_eq!(asked, 0);
        let forged = loop {
            let request = Request::decode(&frame(&mut stream).await?).expect("a request");
            let mut reply = Vec::new();
            Reply::new(request.xid, 1, ReplyBody::Empty).encode_frame(&mut reply);
            if matches!(request.body, RequestBody::Exists(_)) {
                break reply;
            }
            stream.write_all(&reply).await?;
            stream.flush().await?;
        };
        stream.get_mut().0.write_all(&forged).await?;
        let (asked, _stream) = grant().await?;
        assert_eq!(asked, SESSION);
        std::io::Result::Ok(())
    };
    let read = RequestBody::Exists(ReadRequest::new("/a", false));
    let (served, read) = tokio::join!(served, connection.request(read));
    served.expect("a good client");
    let Err(RequestError::Broken(broken)) = read else {
        panic!("{read:?}");
    };
    let cause = "TLS: what came is not the server's";
    assert!(broken.to_string().starts_with(cause), "{broken}");
}

/// A server under a name, and what the cause says.
type Row = (&'static str, Server, &'static str);

/// Checks that a client of this authority refuses each server with the cause, and sends it nothing
/// but its part of the handshake.
async fn assert_refused(authority: &Authority, rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for (what, server, cause) in rows {
        let (port, shaken) = start(server).await;
        // It hears all that the client sends.
        let tap = Tap::new(After::Forward(port)).await;
        let connection = session("localhost", tap.port, trusting(authority));
        let mut said = String::new();
        eventually(what, async || {
            if shaken.load(Ordering::Relaxed) > 0 {
                said = "it is trusted".to_owned();
            }
            for obstacle in connection.obstacles() {
                if let DisconnectReason::Tls(error) = obstacle.cause {
                    said = error.to_string();
                }
            }
            !said.is_empty()
        })
        .await;
        if !said.contains(cause) {
            wrong.push(format!("{what}: {said}"));
        }
        assert!(!tap.heard().is_empty(), "{what}");
        tap.assert_only_handshakes();
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_that_proves_nothing_is_refused_with_its_fault() {
    let (authority, namesake) = (Authority::new("root"), Authority::new("root"));
    let named = &["localhost"];
    let stolen = Issued {
        certificate: authority.issue(named).certificate,
        key: authority.issue(named).key,
    };
    let (name, root) = ("is for other names", "no trusted root has issued");
    let rows = [
        ("expired", authority.issue_expired(named), "has expired"),
        ("early", authority.issue_early(named), "is not valid yet"),
        ("of another name", authority.issue(&["zk.other"]), name),
        ("of no name", authority.issue(&[]), name),
        ("of the address", authority.issue(&["127.0.0.1"]), name),
        ("of a name below", authority.issue(&["a.localhost"]), name),
        ("issued by itself", Issued::by_itself(named), root),
        ("of a namesake", namesake.issue(named), root),
        (
            "of a client",
            authority.issue_for_a_client(named),
            "is not accepted",
        ),
        (
            "of a service",
            authority.issue_by_a_service(named),
            "is not accepted",
        ),
        ("of another's key", stolen, "it is not the server's own"),
    ];
    let shakes = |issued: Issued| Server::Shakes(issued.server(None));
    let rows = rows.map(|(what, issued, cause)| (what, shakes(issued), cause));
    assert_refused(&authority, rows.into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_breaks_the_rules_of_the_handshake_is_refused_with_the_cause() {
    let says = |bytes: &[u8]| Server::Says(bytes.to_vec());
    let version = "of TLS 1.2 and 1.3";
    let (closed, no_tls) = ("closed the connection in", "does not speak TLS");
    let rows = vec![
        ("TLS 1.1", Server::Says(server_hello(TLS_1_1)), version),
        (
            "downgrade",
            Server::Says(server_hello(TLS_1_2)),
            "Downgrade",
        ),
        ("no common version", says(&alert(70)), version),
        ("no common cipher", says(&alert(40)), "accepts no cipher"),
        ("HTTP", says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), no_tls),
        ("frame", says(&[0, 0, 0, 37, 0, 0, 0, 0]), no_tls),
        ("long record", says(&[22, 3, 3, 0xff, 0xff]), no_tls),
        ("the end at once", says(b""), closed),
        ("the end in a header", says(&[22, 3, 3]), closed),
    ];
    assert_refused(&Authority::new("root"), rows).await;
}
