//! What breaks TLS after the handshake: the connection breaks with the cause, no reply is made up,
//! and the session goes on over the next connection.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::server::TlsStream;
use zookeeper_recipes_connection::{Connection, RequestError};
use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, ErrorCode, ReadRequest, Reply, ReplyBody, Request, RequestBody,
};
use zookeeper_recipes_suite::in_time;
use zookeeper_recipes_suite::tls::{Authority, trusting};

use crate::session;

/// What happens on the way in place of the reply to the first request.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Somebody puts a reply into the connection as it is.
    PlainReply,
    /// Somebody puts these bytes into the connection.
    Bytes(&'static [u8]),
    /// The server sends half of the reply, and says that it closes the connection.
    HalfThenClose,
    /// The server sends half of the reply, and the connection ends.
    HalfThenEnd,
}

const SESSION: i64 = 77;

/// The next frame of a client.
async fn frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await?;
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}

/// Grants the session. Returns the session that was asked for.
async fn grant(stream: &mut TlsStream<TcpStream>) -> io::Result<i64> {
    let request = ConnectRequest::decode(&frame(stream).await?).expect("a handshake");
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
    Ok(request.session_id)
}

/// The next read, and the reply to it. Other requests succeed.
async fn reply(stream: &mut TlsStream<TcpStream>) -> io::Result<Vec<u8>> {
    loop {
        let request = Request::decode(&frame(stream).await?).expect("a request");
        let is_read = matches!(request.body, RequestBody::Exists(_));
        let mut bytes = Vec::new();
        let reply = match is_read {
            true => Reply::failed(request.xid, 1, ErrorCode::NoNode),
            false => Reply::new(request.xid, 1, ReplyBody::Empty),
        };
        reply.encode_frame(&mut bytes);
        if is_read {
            return Ok(bytes);
        }
        stream.write_all(&bytes).await?;
        stream.flush().await?;
    }
}

async fn act(mut stream: TlsStream<TcpStream>, act: Act) -> io::Result<()> {
    let reply = reply(&mut stream).await?;
    match act {
        Act::PlainReply => stream.get_mut().0.write_all(&reply).await?,
        Act::Bytes(bytes) => stream.get_mut().0.write_all(bytes).await?,
        Act::HalfThenClose | Act::HalfThenEnd => {
            stream.write_all(&reply[..reply.len() / 2]).await?;
            stream.flush().await?;
        }
    }
    match act {
        Act::HalfThenClose => stream.shutdown().await?,
        Act::HalfThenEnd => stream.get_mut().0.shutdown().await?,
        Act::PlainReply | Act::Bytes(_) => {}
    }
    // The client ends it.
    stream.get_mut().0.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// Serves connections, and acts on the first. Returns its port, and the sessions that are asked for.
async fn start(config: Arc<ServerConfig>, first: Act) -> (u16, Arc<Mutex<Vec<i64>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    let asked: Arc<Mutex<Vec<i64>>> = Arc::default();
    let record = asked.clone();
    tokio::spawn(async move {
        let mut first = Some(first);
        while let Ok((stream, _)) = listener.accept().await {
            let accepted = TlsAcceptor::from(config.clone()).accept(stream).await;
            let mut stream = accepted.expect("a good handshake");
            let session = grant(&mut stream).await.expect("a client");
            record.lock().expect("no panic").push(session);
            let served = match first.take() {
                Some(first) => act(stream, first).await,
                None => serve(stream).await,
            };
            // The client ends it.
            drop(served);
        }
    });
    (port, asked)
}

async fn serve(mut stream: TlsStream<TcpStream>) -> io::Result<()> {
    loop {
        let reply = reply(&mut stream).await?;
        stream.write_all(&reply).await?;
        stream.flush().await?;
    }
}

async fn read(connection: &Connection) -> Result<ErrorCode, RequestError> {
    let read = RequestBody::Exists(ReadRequest {
        path: "/a".to_owned(),
        watch: false,
    });
    let reply = in_time("a reply", connection.request(read)).await;
    reply.map(|answer| answer.reply.header.error)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_tls_in_a_session_breaks_its_connection_alone_and_is_no_reply() {
    let authority = Authority::new("root");
    let shown = authority.issue(&["localhost"]);
    let forged = "TLS: what came is not the server's";
    let closed = "the server closed the connection";
    for version in [&TLS12, &TLS13] {
        for (first, cause) in [
            (Act::PlainReply, forged),
            (
                Act::Bytes(b"\x17\x03\x03\x00\x20a forged record of 32 bytes....."),
                forged,
            ),
            // An alert that the server closes the connection, as it is.
            (Act::Bytes(b"\x15\x03\x03\x00\x02\x01\x00"), forged),
            // A wish for another handshake, as it is.
            (Act::Bytes(b"\x16\x03\x03\x00\x04\x00\x00\x00\x00"), forged),
            (Act::Bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n"), forged),
            (Act::HalfThenClose, closed),
            (Act::HalfThenEnd, closed),
        ] {
            let what = format!("{version:?}, {first:?}");
            let (port, asked) = start(shown.server_of(&[version], None), first).await;
            let connection = session("localhost", port, trusting(&authority));
            match read(&connection).await {
                Err(RequestError::Broken(broken)) => {
                    assert!(broken.to_string().starts_with(cause), "{what}: {broken}");
                }
                other => panic!("{what}: {other:?}"),
            }
            let next = read(&connection).await;
            assert!(matches!(next, Ok(ErrorCode::NoNode)), "{what}: {next:?}");
            assert_eq!(*asked.lock().expect("no panic"), [0, SESSION], "{what}");
        }
    }
}
