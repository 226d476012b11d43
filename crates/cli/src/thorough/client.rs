//! A client that hides nothing: one connection, with each request, reply and event on it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use zookeeper_recipes_connection::{DigestMd5, DisconnectReason, SaslStep, Stream};
use zookeeper_recipes_protocol::{
    Acl, AuthId, AuthRequest, ConnectRequest, ConnectResponse, CreateMode, CreateRequest,
    DeleteRequest, ErrorCode, FrameDecoder, OpCode, PASSWORD_LENGTH, PathRequest, Permission,
    ReadRequest, Reply, ReplyBody, ReplyHeader, Request, RequestBody, SaslRequest, SetDataRequest,
    Stat, WatcherEvent, xid,
};

/// The longest wait for a reply. Longer than an election lasts.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The longest reply to accept.
const LONGEST_REPLY: usize = 16 << 20;

/// Why a request has no reply, or another reply than the expected one.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("no server was reached: {0}")]
    Unreachable(DisconnectReason),
    /// The server closed the connection, or was silent, in place of an answer to the handshake.
    #[error("the server did not answer the handshake")]
    NoAnswer,
    /// The server answered the handshake without a session.
    #[error("the server says that the session has expired")]
    Expired,
    #[error("the server closed the connection at {0:?}")]
    Closed(OpCode),
    #[error("the server did not answer {0:?} within {PATIENCE:?}")]
    Silent(OpCode),
    #[error("the server sent no reply of {0:?} in place of one")]
    Garbled(OpCode),
    #[error("the server answered {0:?} with {1}")]
    Refused(OpCode, ErrorCode),
}

impl Trouble {
    /// True if the server refused a request with this code.
    pub(super) fn is_refusal(&self, code: ErrorCode) -> bool {
        matches!(self, Trouble::Refused(_, refusal) if *refusal == code)
    }
}

/// A session that a new connection can take over.
#[derive(Clone, Debug)]
pub(super) struct LeftSession {
    pub(super) id: i64,
    pub(super) timeout: Duration,
    password: Vec<u8>,
    last_zxid: i64,
}

impl LeftSession {
    /// No session: the server opens one, and the client asks for this timeout.
    pub(super) fn none(timeout: Duration) -> LeftSession {
        LeftSession {
            id: 0,
            timeout,
            password: vec![0; PASSWORD_LENGTH],
            last_zxid: 0,
        }
    }
}

/// One connection with a session.
pub(super) struct Client {
    stream: Box<dyn Stream>,
    decoder: FrameDecoder,
    next_xid: i32,
    unanswered: VecDeque<(i32, OpCode)>,
    pub(super) session: LeftSession,
    /// The events that have come, in order.
    pub(super) events: Vec<WatcherEvent>,
}

impl Client {
    /// Opens a session, or takes one over.
    pub(super) async fn greet(
        stream: Box<dyn Stream>,
        left: &LeftSession,
    ) -> Result<Client, Trouble> {
        let mut client = Client {
            stream,
            decoder: FrameDecoder::new(LONGEST_REPLY),
            next_xid: 0,
            unanswered: VecDeque::new(),
            session: left.clone(),
            events: Vec::new(),
        };
        let request = ConnectRequest {
            last_zxid_seen: left.last_zxid,
            session_id: left.id,
            password: left.password.clone(),
            ..ConnectRequest::new(left.timeout)
        };
        let mut bytes = Vec::new();
        request.encode_frame(&mut bytes);
        let sent = client.stream.write_all(&bytes).await;
        sent.map_err(|_| Trouble::NoAnswer)?;
        let frame = timeout(PATIENCE, client.frame()).await;
        let frame = frame.ok().flatten().ok_or(Trouble::NoAnswer)?;
        let answer = ConnectResponse::decode(&frame).map_err(|_| Trouble::NoAnswer)?;
        if !answer.is_granted() {
            return Err(Trouble::Expired);
        }
        client.session.id = answer.session_id;
        client.session.timeout = Duration::from_millis(answer.timeout.unsigned_abs().into());
        client.session.password = answer.password;
        Ok(client)
    }

    /// Breaks the connection, and leaves the session open.
    pub(super) fn leave(self) -> LeftSession {
        self.session
    }

    /// The next frame. `None` if the connection has ended.
    async fn frame(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().ok()? {
                return Some(frame.to_vec());
            }
            match self.stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.decoder.feed(&buffer[..count]),
            }
        }
    }

    /// Sends requests together, and does not wait for their replies.
    pub(super) async fn send(
        &mut self,
        bodies: impl IntoIterator<Item = RequestBody>,
    ) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        let mut last = OpCode::Ping;
        for body in bodies {
            self.next_xid += 1;
            let xid = body.fixed_xid().unwrap_or(self.next_xid);
            last = body.opcode();
            self.unanswered.push_back((xid, last));
            Request { xid, body }.encode_frame(&mut bytes);
        }
        let sent = self.stream.write_all(&bytes).await;
        sent.map_err(|_| Trouble::Closed(last))
    }

    /// The next reply. Events before it are kept.
    pub(super) async fn reply(&mut self) -> Result<Reply, Trouble> {
        let oldest = self.unanswered.front().map_or(OpCode::Ping, |(_, it)| *it);
        loop {
            let frame = timeout(PATIENCE, self.frame()).await;
            let frame = frame.map_err(|_| Trouble::Silent(oldest))?;
            let frame = frame.ok_or(Trouble::Closed(oldest))?;
            let header = ReplyHeader::peek(&frame).map_err(|_| Trouble::Garbled(oldest))?;
            if header.xid == xid::NOTIFICATION {
                let event = Reply::decode(&frame, OpCode::Notification);
                if let Ok(ReplyBody::Notification(event)) = event.map(|event| event.body) {
                    self.events.push(event);
                }
                continue;
            }
            let mut unanswered = self.unanswered.iter();
            let place = unanswered.position(|(xid, _)| *xid == header.xid);
            let asked = place.and_then(|place| self.unanswered.remove(place));
            let (_, opcode) = asked.ok_or(Trouble::Garbled(oldest))?;
            self.session.last_zxid = self.session.last_zxid.max(header.zxid);
            return Reply::decode(&frame, opcode).map_err(|_| Trouble::Garbled(opcode));
        }
    }

    /// Sends a request, and waits for its reply.
    pub(super) async fn ask(&mut self, body: RequestBody) -> Result<Reply, Trouble> {
        self.send([body]).await?;
        self.reply().await
    }

    /// Sends a request that has to succeed.
    pub(super) async fn done(&mut self, body: RequestBody) -> Result<ReplyBody, Trouble> {
        let opcode = body.opcode();
        let reply = self.ask(body).await?;
        match reply.header.error {
            ErrorCode::Ok => Ok(reply.body),
            code => Err(Trouble::Refused(opcode, code)),
        }
    }

    /// What the reply to a request says that has to succeed.
    async fn found<T>(
        &mut self,
        body: RequestBody,
        find: fn(ReplyBody) -> Option<T>,
    ) -> Result<T, Trouble> {
        let opcode = body.opcode();
        let found = find(self.done(body).await?);
        found.ok_or(Trouble::Garbled(opcode))
    }

    pub(super) async fn authenticate(
        &mut self,
        scheme: &str,
        credentials: &str,
    ) -> Result<(), Trouble> {
        if scheme == DigestMd5::SCHEME {
            return self.exchange(credentials).await;
        }
        let request = AuthRequest {
            kind: 0,
            scheme: scheme.to_owned(),
            auth: Some(credentials.as_bytes().to_vec()),
        };
        self.done(RequestBody::Auth(request)).await.map(drop)
    }

    /// Shows the user and the password by SASL.
    async fn exchange(&mut self, credentials: &str) -> Result<(), Trouble> {
        let seed = RandomState::new().build_hasher().finish();
        let mut exchange = DigestMd5::new(credentials.as_bytes(), seed);
        let mut token = Some(exchange.begin());
        loop {
            let request = RequestBody::Sasl(SaslRequest { token });
            let answer = self.found(request, |reply| match reply {
                ReplyBody::Sasl(response) => response.token,
                _ => None,
            });
            match exchange.next(&answer.await?) {
                Some(SaslStep::Respond(next)) => token = Some(next),
                Some(SaslStep::Done) => return Ok(()),
                None => return Err(Trouble::Refused(OpCode::Sasl, ErrorCode::AuthFailed)),
            }
        }
    }

    /// Creates a znode. Returns its path and its metadata.
    pub(super) async fn create(
        &mut self,
        path: &str,
        mode: CreateMode,
    ) -> Result<(String, Stat), Trouble> {
        self.found(
            RequestBody::Create2(create(path, mode)),
            |reply| match reply {
                ReplyBody::Create2 { path, stat } => Some((path, stat)),
                _ => None,
            },
        )
        .await
    }

    /// Creates a persistent znode with data.
    pub(super) async fn create_marked(&mut self, path: &str, data: &[u8]) -> Result<(), Trouble> {
        let request = CreateRequest {
            data: Some(data.to_vec()),
            ..create(path, CreateMode::Persistent)
        };
        self.done(RequestBody::Create2(request)).await.map(drop)
    }

    pub(super) async fn create_directory(&mut self, path: &str) -> Result<(), Trouble> {
        self.create(path, CreateMode::Persistent).await.map(drop)
    }

    pub(super) async fn delete(&mut self, path: &str) -> Result<(), Trouble> {
        self.done(delete(path, -1)).await.map(drop)
    }

    /// The metadata of a znode, if it exists.
    pub(super) async fn exists(&mut self, path: &str) -> Result<Option<Stat>, Trouble> {
        match self
            .found(RequestBody::Exists(read(path, false)), stat)
            .await
        {
            Err(trouble) if trouble.is_refusal(ErrorCode::NoNode) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The data of a znode, and its metadata.
    pub(super) async fn get(&mut self, path: &str) -> Result<(Vec<u8>, Stat), Trouble> {
        self.found(
            RequestBody::GetData(read(path, false)),
            |reply| match reply {
                ReplyBody::Data { data, stat } => Some((data.unwrap_or_default(), stat)),
                _ => None,
            },
        )
        .await
    }

    pub(super) async fn set(&mut self, path: &str, data: &[u8]) -> Result<Stat, Trouble> {
        self.found(set(path, data, -1), stat).await
    }

    pub(super) async fn children(&mut self, path: &str) -> Result<Vec<String>, Trouble> {
        self.found(
            RequestBody::GetChildren(read(path, false)),
            |reply| match reply {
                ReplyBody::Children { children } => Some(children),
                _ => None,
            },
        )
        .await
    }

    pub(super) async fn sync(&mut self, path: &str) -> Result<(), Trouble> {
        let sync = RequestBody::Sync(PathRequest::new(path));
        self.done(sync).await.map(drop)
    }

    /// Deletes a znode with all below. A znode that is absent is no error.
    pub(super) async fn delete_all(&mut self, path: &str) -> Result<(), Trouble> {
        let names = match self.children(path).await {
            Err(trouble) if trouble.is_refusal(ErrorCode::NoNode) => return Ok(()),
            names => names?,
        };
        for name in names {
            Box::pin(self.delete_all(&format!("{path}/{name}"))).await?;
        }
        match self.delete(path).await {
            Err(trouble) if trouble.is_refusal(ErrorCode::NoNode) => Ok(()),
            deleted => deleted,
        }
    }

    /// Closes the session. If that fails, the session ends by its timeout.
    pub(super) async fn close(mut self) {
        let _ = self.done(RequestBody::CloseSession).await;
    }
}

fn stat(reply: ReplyBody) -> Option<Stat> {
    match reply {
        ReplyBody::Stat(stat) => Some(stat),
        _ => None,
    }
}

pub(super) fn create(path: &str, mode: CreateMode) -> CreateRequest {
    let acl = vec![Acl::new(Permission::ALL, AuthId::anyone())];
    CreateRequest::new(path, Vec::new(), acl, mode)
}

pub(super) fn delete(path: &str, version: i32) -> RequestBody {
    RequestBody::Delete(DeleteRequest::new(path, version))
}

pub(super) fn set(path: &str, data: &[u8], version: i32) -> RequestBody {
    RequestBody::SetData(SetDataRequest::new(path, data.to_vec(), version))
}

pub(super) fn read(path: &str, watch: bool) -> ReadRequest {
    ReadRequest::new(path, watch)
}
