//! A bare socket that sends the requests of an uncontended lock, and nothing else.

use std::io::{Read, Write};
use std::net::TcpStream;

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
        let create = CreateRequest {
            path: format!("{directory}/{CONTENDER}"),
            data: Some(Vec::new()),
            acl: vec![Acl {
                permissions: Permission::ALL,
                id: AuthId {
                    scheme: "world".to_owned(),
                    id: "anyone".to_owned(),
                },
            }],
            mode: CreateMode::EphemeralSequential,
        };
        let ReplyBody::Create2 { path, .. } = self.request(RequestBody::Create2(create)) else {
            panic!("another reply to a create");
        };
        self.request(RequestBody::Delete(DeleteRequest { path, version: -1 }));
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
