//! Any requests: the server answers or closes the connection, does not panic, and serves others.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::panic;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use zookeeper_recipes_protocol::{
    ConnectRequest, FRAME_HEADER, PASSWORD_LENGTH, Request, RequestBody,
};
use zookeeper_recipes_simulation::EmbeddedServer;

use crate::differential::steps;
use crate::raw::{Raw, at};

/// Longer than the server takes to close a connection that its client has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// A panic ends the task of one connection only, so that no client sees it for certain.
static PANICS: AtomicUsize = AtomicUsize::new(0);

static SERVER: LazyLock<EmbeddedServer> = LazyLock::new(|| {
    let earlier = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if thread::current().name() == Some("embedded-zookeeper") {
            PANICS.fetch_add(1, Ordering::SeqCst);
        }
        earlier(panicked);
    }));
    EmbeddedServer::start().expect("it starts")
});

fn handshake() -> Vec<u8> {
    let mut stream = Vec::new();
    let handshake = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout: 1_000,
        session_id: 0,
        password: vec![0; PASSWORD_LENGTH],
        read_only: None,
    };
    handshake.encode_frame(&mut stream);
    stream
}

/// A frame of these bytes.
fn frame(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

/// A part of a stream: a request, one that lacks its last byte, any bytes of a known type, any bytes.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let request = |(xid, body)| {
        let mut stream = Vec::new();
        Request { xid, body }.encode_frame(&mut stream);
        stream
    };
    let request = move || (any::<i32>(), steps::request()).prop_map(request);
    let cut = |whole: Vec<u8>| frame(&whole[FRAME_HEADER..whole.len() - 1]);
    let typed = (any::<i32>(), any::<i8>(), vec(any::<u8>(), 0..64)).prop_map(
        |(xid, opcode, rest): (i32, i8, Vec<u8>)| {
            let opcode = i32::from(opcode).to_be_bytes();
            frame(&[&xid.to_be_bytes()[..], &opcode, &rest].concat())
        },
    );
    // The server closes the connection at the first raw bytes.
    prop_oneof![
        24 => request(),
        1 => request().prop_map(cut),
        6 => typed,
        1 => vec(any::<u8>(), 0..64),
    ]
}

/// What a client sends. One stream in eight begins without a handshake.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let begin = prop_oneof![7 => Just(handshake()), 1 => Just(Vec::new())];
    (begin, vec(part(), 0..40)).prop_map(|(begin, parts)| [begin, parts.concat()].concat())
}

/// Sends a stream, ends it, and reads what the server answers until it has closed the connection.
fn send(address: &str, stream: &[u8]) {
    let mut connection = TcpStream::connect(address).expect("the server listens");
    let patience = Some(PATIENCE);
    connection
        .set_read_timeout(patience)
        .expect("an open socket");
    // The server may have closed the connection at the first bytes.
    let _ = connection.write_all(stream);
    let _ = connection.shutdown(Shutdown::Write);
    match connection.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_requests_leave_a_server_that_serves_others(stream in stream()) {
        let address = SERVER.connect_string();
        send(&address, &stream);
        let mut other = Raw::connect(&address);
        other.done(RequestBody::Exists(at("/", false)));
        other.done(RequestBody::CloseSession);
        prop_assert_eq!(PANICS.load(Ordering::SeqCst), 0, "the server has panicked");
    }
}
