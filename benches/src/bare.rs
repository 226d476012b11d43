//! The requests of an uncontended lock and nothing else, by a bare socket and by the connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use zookeeper_recipes_connection::Connection;
use zookeeper_recipes_protocol::{
    Acl, AuthId, ConnectRequest, ConnectResponse, CreateMode, CreateRequest, DeleteRequest,
    ErrorCode, FrameDecoder, OpCode, PASSWORD_LENGTH, Permission, Reply, ReplyBody, Request,
    RequestBody,
};

use crate::raw::CONTENDER;
use crate::testbed::SESSION_TIMEOUT;

const ANSWERED: &str = "the server answers";
/// Longer than any reply.
const LONGEST: usize = 1 << 20;

/// A session over a blocking socket, which is the least that a client can do.
///
/// The session panics if the server refuses a request.
#[derive(Debug)]
pub struct BareSocket {
    stream: TcpStream,
    decoder: FrameDecoder,
    xid: i32,
}

impl BareSocket {
    /// Opens a session with the server at this address.
    pub fn open(address: &str) -> BareSocket {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        let mut socket = BareSocket {
            stream,
            decoder: FrameDecoder::new(LONGEST),
            xid: 0,
        };
        let mut bytes = Vec::new();
        ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout: SESSION_TIMEOUT.as_millis() as i32,
            session_id: 0,
            password: vec![0; PASSWORD_LENGTH],
            read_only: Some(false),
        }
        .encode_frame(&mut bytes);
        let opened = socket.exchange(&bytes, ConnectResponse::decode);
        assert_ne!(opened.expect(ANSWERED).session_id, 0, "a session is open");
        socket
    }

    /// Creates a contender in this directory, and deletes it.
    pub fn turn(&mut self, directory: &str) {
        let path = created(self.request(create(directory)));
        self.request(delete(path));
    }

    fn request(&mut self, body: RequestBody) -> ReplyBody {
        self.xid += 1;
        let opcode: OpCode = body.opcode();
        let mut bytes = Vec::new();
        let xid = self.xid;
        Request { xid, body }.encode_frame(&mut bytes);
        let reply = self.exchange(&bytes, |frame| Reply::decode(frame, opcode));
        let reply = reply.expect(ANSWERED);
        assert_eq!((reply.header.xid, reply.header.error), (xid, ErrorCode::Ok));
        reply.body
    }

    fn exchange<T>(&mut self, bytes: &[u8], decode: impl Fn(&[u8]) -> T) -> T {
        self.stream.write_all(bytes).expect(ANSWERED);
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().expect(ANSWERED) {
                return decode(frame);
            }
            let number = self.stream.read(&mut buffer).expect(ANSWERED);
            assert_ne!(number, 0, "{ANSWERED}");
            self.decoder.feed(&buffer[..number]);
        }
    }
}

/// Creates contenders in this directory over the library's own connection, and deletes them.
pub async fn connection_turns(connection: &Connection, directory: &str, times: u32) {
    for _ in 0..times {
        let path = created(answer(connection, create(directory)).await);
        answer(connection, delete(path)).await;
    }
}

async fn answer(connection: &Connection, body: RequestBody) -> ReplyBody {
    let answer = connection.request(body).await.expect(ANSWERED);
    assert_eq!(answer.reply.header.error, ErrorCode::Ok);
    answer.reply.body
}

fn create(directory: &str) -> RequestBody {
    RequestBody::Create2(CreateRequest {
        path: format!("{directory}/{CONTENDER}"),
        data: Some(Vec::new()),
        acl: vec![Acl::new(Permission::ALL, AuthId::anyone())],
        mode: CreateMode::EphemeralSequential,
    })
}

fn created(reply: ReplyBody) -> String {
    match reply {
        ReplyBody::Create2 { path, .. } => path,
        _ => panic!("another reply to a create"),
    }
}

fn delete(path: String) -> RequestBody {
    RequestBody::Delete(DeleteRequest { path, version: -1 })
}
