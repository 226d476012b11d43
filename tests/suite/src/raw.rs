//! A client that sends any bytes, and hides nothing.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use zookeeper_recipes_protocol::{
    Acl, AuthId, ConnectRequest, ConnectResponse, CreateMode, CreateRequest, DEFAULT_FRAME_LIMIT,
    ErrorCode, FRAME_HEADER, FrameDecoder, OpCode, Permission, ReadRequest, Reply, ReplyBody,
    ReplyHeader, Request, RequestBody, WatcherEvent, xid,
};

/// Longer than any server takes to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection with a session.
#[derive(Debug)]
pub struct Raw {
    stream: TcpStream,
    decoder: FrameDecoder,
    /// The answer to the handshake.
    pub connected: ConnectResponse,
    next_xid: i32,
    sent: VecDeque<(i32, OpCode)>,
    /// The events that came before the last reply.
    pub events: Vec<WatcherEvent>,
    /// True if each reply is encoded again, to see that all its bytes have a meaning.
    checks: bool,
}

impl Raw {
    /// Opens a session.
    pub fn connect(address: &str) -> Raw {
        Raw::resume(address, 0, vec![0; 16])
    }

    /// Goes on with a session.
    pub fn resume(address: &str, session_id: i64, password: Vec<u8>) -> Raw {
        Raw::greet(address, session_id, password, false).expect("an answer")
    }

    /// Opens a session that a server without a leader may serve; `None` if none does.
    pub fn connect_to_read(address: &str) -> Option<Raw> {
        Raw::greet(address, 0, vec![0; 16], true)
    }

    fn greet(address: &str, session_id: i64, password: Vec<u8>, reads_only: bool) -> Option<Raw> {
        let mut stream = TcpStream::connect(address).expect("a server listens");
        stream.set_nodelay(true).expect("an open socket");
        let patience = Some(PATIENCE);
        stream.set_read_timeout(patience).expect("an open socket");
        let request = ConnectRequest {
            session_id,
            password,
            read_only: Some(reads_only),
            ..ConnectRequest::new(PATIENCE)
        };
        let mut bytes = Vec::new();
        request.encode_frame(&mut bytes);
        stream.write_all(&bytes).expect("a server that reads");
        let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT * 4);
        let frame = next_frame(&mut stream, &mut decoder)?;
        let connected = ConnectResponse::decode(&frame).expect("an answer to a handshake");
        let mut again = Vec::new();
        connected.encode_frame(&mut again);
        assert_eq!(again[FRAME_HEADER..], frame, "{connected:?}");
        Some(Raw {
            connected,
            stream,
            decoder,
            next_xid: 0,
            sent: VecDeque::new(),
            events: Vec::new(),
            checks: true,
        })
    }

    /// The same client, which does no more with a reply than to decode it.
    #[must_use]
    pub fn without_checks(mut self) -> Raw {
        self.checks = false;
        self
    }

    /// Sends a request without waiting for its reply, and returns its xid.
    pub fn send(&mut self, body: RequestBody) -> i32 {
        self.next_xid += 1;
        let xid = body.fixed_xid().unwrap_or(self.next_xid);
        self.sent.push_back((xid, body.opcode()));
        let mut bytes = Vec::new();
        Request { xid, body }.encode_frame(&mut bytes);
        self.stream.write_all(&bytes).expect("a server that reads");
        xid
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a server that reads");
    }

    /// The next reply. Events that come before it are kept.
    pub fn reply(&mut self) -> Option<Reply> {
        loop {
            let frame = next_frame(&mut self.stream, &mut self.decoder)?;
            let header = ReplyHeader::peek(&frame).expect("a header");
            if header.xid == xid::NOTIFICATION {
                let event = self.decoded(&frame, OpCode::Notification);
                if let ReplyBody::Notification(event) = event.body {
                    self.events.push(event);
                }
                continue;
            }
            let place = self.sent.iter().position(|(xid, _)| *xid == header.xid);
            let place = place.expect("a reply to a request");
            let (_, opcode) = self.sent.remove(place).expect("it is there");
            return Some(self.decoded(&frame, opcode));
        }
    }

    /// The next frame, whatever it is.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        self.sent.clear();
        next_frame(&mut self.stream, &mut self.decoder)
    }

    /// Sends a request and waits for its reply.
    pub fn ask(&mut self, body: RequestBody) -> Reply {
        self.send(body);
        self.reply().expect("the server answers")
    }

    /// Sends a request that succeeds.
    pub fn done(&mut self, body: RequestBody) -> ReplyBody {
        let reply = self.ask(body);
        assert_eq!(reply.header.error, ErrorCode::Ok, "{reply:?}");
        reply.body
    }

    /// Sends a request that fails.
    pub fn fails(&mut self, body: RequestBody) -> ErrorCode {
        self.ask(body).header.error
    }

    /// The events that have come until the server has answered a ping, with their paths.
    pub fn events(&mut self) -> Vec<WatcherEvent> {
        self.ask(RequestBody::Ping);
        std::mem::take(&mut self.events)
    }

    /// Decodes a reply or an event. All its bytes have a meaning: encoded again, it is the same.
    fn decoded(&self, frame: &[u8], opcode: OpCode) -> Reply {
        let reply = Reply::decode(frame, opcode).expect("a reply");
        if self.checks {
            let mut again = Vec::new();
            reply.encode_frame(&mut again);
            assert_eq!(again[FRAME_HEADER..], *frame, "{opcode:?}: {reply:?}");
        }
        reply
    }

    /// Whether the server closes the connection, whatever it sends before.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn next_frame(stream: &mut TcpStream, decoder: &mut FrameDecoder) -> Option<Vec<u8>> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(frame) = decoder.next_frame().expect("a frame") {
            return Some(frame.to_vec());
        }
        match stream.read(&mut buffer).expect("an answer in time") {
            0 => return None,
            count => decoder.feed(&buffer[..count]),
        }
    }
}

/// A list that grants these permissions to everyone.
pub fn anyone(permissions: Permission) -> Vec<Acl> {
    vec![entry(permissions, "world", "anyone")]
}

/// An entry of an access control list.
pub fn entry(permissions: Permission, scheme: &str, id: &str) -> Acl {
    Acl::new(permissions, AuthId::new(scheme, id))
}

/// The request that creates a znode for everyone.
pub fn create(path: &str, mode: CreateMode) -> RequestBody {
    let (data, acl) = (b"data".to_vec(), anyone(Permission::ALL));
    RequestBody::Create(CreateRequest::new(path, data, acl, mode))
}

/// The path of a read, with a watch or without.
pub fn at(path: &str, watch: bool) -> ReadRequest {
    ReadRequest::new(path, watch)
}
