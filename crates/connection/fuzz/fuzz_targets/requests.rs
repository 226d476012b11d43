//! Any requests to the embedded server, which has to serve others afterwards.

#![no_main]

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use zookeeper_recipes_protocol::{ConnectRequest, Request, RequestBody};
use zookeeper_recipes_simulation::EmbeddedServer;

/// Longer than the server takes to close a connection that its client has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// After so many runs a new server is started, without the znodes of the earlier runs.
const RUNS: u32 = 1_000;

thread_local! {
    static SERVER: RefCell<Option<(EmbeddedServer, u32)>> = const { RefCell::new(None) };
}

fn handshake() -> Vec<u8> {
    let mut stream = Vec::new();
    let handshake = ConnectRequest {
        read_only: None,
        ..ConnectRequest::new(Duration::from_secs(1))
    };
    handshake.encode_frame(&mut stream);
    stream
}

/// What a client sends: frames, each of a request's number and the bytes behind its header. One
/// stream in eight begins without a handshake, and one part in 32 is no frame.
fn stream_of(bytes: &[u8]) -> Vec<u8> {
    let (how, mut bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let mut stream = match how % 8 {
        0 => Vec::new(),
        _ => handshake(),
    };
    for xid in 1_i32.. {
        let [kind, opcode, length, rest @ ..] = bytes else {
            break;
        };
        let (given, after) = rest.split_at(rest.len().min(usize::from(*length)));
        bytes = after;
        if kind % 32 != 0 {
            stream.extend((given.len() as u32 + 8).to_be_bytes());
            stream.extend(xid.to_be_bytes());
            stream.extend(i32::from(*opcode as i8).to_be_bytes());
        }
        stream.extend(given);
    }
    stream
}

/// Sends a stream, ends it, and reads what the server answers until it has closed the connection.
fn answer_to(address: &str, stream: &[u8]) -> Vec<u8> {
    let mut connection = TcpStream::connect(address).expect("the server listens");
    let patience = connection.set_read_timeout(Some(PATIENCE));
    patience.expect("an open socket");
    // The server may have closed the connection at the first bytes.
    let _ = connection.write_all(stream);
    let _ = connection.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(error) = connection.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{stream:?}");
    }
    answer
}

fuzz_target!(|data: &[u8]| {
    SERVER.with_borrow_mut(|kept| {
        if kept.as_ref().is_some_and(|(_, runs)| *runs == RUNS) {
            *kept = None;
        }
        let start = || (EmbeddedServer::start().expect("it starts"), 0);
        let (server, runs) = kept.get_or_insert_with(start);
        *runs += 1;
        let address = server.connect_string();
        answer_to(&address, &stream_of(data));
        let (mut other, body) = (handshake(), RequestBody::CloseSession);
        Request { xid: 77, body }.encode_frame(&mut other);
        let answer = answer_to(&address, &other);
        let closed = 77_i32.to_be_bytes();
        assert!(answer.windows(4).any(|it| it == closed), "{answer:?}");
    });
});
