//! A peer that answers as the members of an ensemble do, but for what a test says.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, DEFAULT_FRAME_LIMIT, ErrorCode, EventType, FrameDecoder,
    KeeperState, OpCode, ReadRequest, Reply, ReplyBody, Request, RequestBody, SaslResponse,
    SetWatchesRequest, Stat, WatcherEvent, WatcherType, xid,
};

/// What a server answers to a token of SASL.
pub(crate) type Challenge = Result<Option<Vec<u8>>, ErrorCode>;

/// What a test says. By default the ensemble is healthy.
#[derive(Debug, Default)]
pub(crate) struct Conduct {
    /// The session timeout that is granted at most, in milliseconds.
    pub(crate) grants: Option<i32>,
    /// Requests of these kinds are never answered.
    pub(crate) mute: Vec<OpCode>,
    /// The connection is closed at a request of this kind.
    pub(crate) closes_at: Option<OpCode>,
    /// The error that `setWatches` is answered with.
    pub(crate) refuses_watches: Option<ErrorCode>,
    pub(crate) refuses_auth: bool,
    /// The error that `addWatch` is answered with. The connection is closed behind it.
    pub(crate) refuses_trees: Option<ErrorCode>,
    /// How tokens of SASL are answered. By default there is no SASL.
    pub(crate) sasl: Option<fn(&[u8]) -> Challenge>,
    /// Each request but credentials is answered with this error, and the connection is closed.
    pub(crate) refuses_all: Option<ErrorCode>,
    pub(crate) read_only: bool,
    /// True if the members have no quorum: they close each connection in the handshake.
    pub(crate) no_quorum: bool,
}

/// What all members know.
#[derive(Debug)]
pub(crate) struct Ensemble {
    pub(crate) conduct: Conduct,
    pub(crate) zxid: i64,
    /// The paths that exist.
    pub(crate) znodes: BTreeSet<String>,
    /// The live sessions and their passwords.
    pub(crate) sessions: BTreeMap<i64, Vec<u8>>,
    pub(crate) last_session: i64,
    /// All events that a watch could have seen, with their zxids.
    pub(crate) history: Vec<(i64, String, EventType)>,
    /// All requests behind the handshake, in the order in which they came.
    pub(crate) requests: Vec<Request>,
    pub(crate) handshakes: Vec<ConnectRequest>,
}

impl Default for Ensemble {
    fn default() -> Ensemble {
        Ensemble {
            conduct: Conduct::default(),
            zxid: 0,
            znodes: BTreeSet::from(["/".to_owned()]),
            sessions: BTreeMap::new(),
            last_session: 0,
            history: Vec::new(),
            requests: Vec::new(),
            handshakes: Vec::new(),
        }
    }
}

/// One connection, at its member.
#[derive(Debug)]
pub(crate) struct Served {
    decoder: FrameDecoder,
    session: Option<i64>,
    data: BTreeSet<String>,
    trees: BTreeSet<String>,
    children: BTreeSet<String>,
    /// Bytes for the client.
    pub(crate) to_client: Vec<u8>,
    pub(crate) closed: bool,
}

impl Served {
    pub(crate) fn new() -> Served {
        Served {
            decoder: FrameDecoder::new(DEFAULT_FRAME_LIMIT),
            session: None,
            data: BTreeSet::new(),
            trees: BTreeSet::new(),
            children: BTreeSet::new(),
            to_client: Vec::new(),
            closed: false,
        }
    }

    /// The paths that the member watches for this connection.
    pub(crate) fn watched(&self) -> usize {
        self.data.len() + self.children.len() + self.trees.len()
    }

    fn send(&mut self, reply: &Reply) {
        reply.encode_frame(&mut self.to_client);
    }

    fn watch(&mut self, read: &ReadRequest, kind: WatcherType) {
        if read.watch {
            if kind == WatcherType::Data {
                self.trees.remove(&read.path);
            }
            self.table(kind).insert(read.path.clone());
        }
    }

    fn table(&mut self, kind: WatcherType) -> &mut BTreeSet<String> {
        match kind {
            WatcherType::Data => &mut self.data,
            _ => &mut self.children,
        }
    }

    /// Removes watches. Servers before 3.9 remove the recursive watch of the path with that of data.
    fn unwatch(&mut self, path: &str, kind: WatcherType) -> bool {
        let data =
            kind != WatcherType::Children && (self.data.remove(path) | self.trees.remove(path));
        let children = kind != WatcherType::Data && self.children.remove(path);
        data | children
    }

    /// True if a recursive watch covers the path.
    fn covers(&self, path: &str) -> bool {
        let mut above = path;
        while !self.trees.contains(above) {
            if above == "/" {
                return false;
            }
            above = parent(above);
        }
        true
    }

    /// Sends the event to the client, if a watch waits for it.
    fn event(&mut self, path: &str, kind: EventType) {
        let (data, children) = match kind {
            EventType::NodeDeleted => (self.data.remove(path), self.children.remove(path)),
            EventType::NodeChildrenChanged => (false, self.children.remove(path)),
            _ => (self.data.remove(path), false),
        };
        let in_tree = kind != EventType::NodeChildrenChanged && self.covers(path);
        if data || children || in_tree {
            self.send(&Reply::notification(event(path, kind)));
        }
    }
}

impl Ensemble {
    /// Takes bytes of a client.
    pub(crate) fn receive(&mut self, served: &mut Served, bytes: &[u8]) {
        served.decoder.feed(bytes);
        while !served.closed {
            let frame = served.decoder.next_frame();
            let Some(frame) = frame.expect("the client sends frames").map(<[u8]>::to_vec) else {
                return;
            };
            if served.session.is_none() {
                self.greet(served, ConnectRequest::decode(&frame).expect("a handshake"));
            } else {
                let request = Request::decode(&frame).expect("a request");
                self.requests.push(request.clone());
                self.answer(served, request);
            }
        }
    }

    fn greet(&mut self, served: &mut Served, request: ConnectRequest) {
        self.handshakes.push(request.clone());
        if self.conduct.no_quorum || request.last_zxid_seen > self.zxid {
            served.closed = true;
            return;
        }
        let mut session = request.session_id;
        if session == 0 {
            self.last_session += 1;
            session = self.last_session;
            self.sessions.insert(session, vec![session as u8; 16]);
        } else if self.sessions.get(&session) != Some(&request.password) {
            session = 0;
        }
        let granted = self.conduct.grants.unwrap_or(i32::MAX);
        let response = ConnectResponse {
            protocol_version: 0,
            timeout: if session == 0 {
                0
            } else {
                request.timeout.min(granted)
            },
            session_id: session,
            password: self.sessions.get(&session).cloned().unwrap_or_default(),
            read_only: Some(self.conduct.read_only),
        };
        response.encode_frame(&mut served.to_client);
        served.closed = session == 0;
        served.session = Some(session);
    }

    fn answer(&mut self, served: &mut Served, Request { xid, body }: Request) {
        let opcode = body.opcode();
        if self.conduct.closes_at == Some(opcode) {
            served.closed = true;
            return;
        }
        if self.conduct.mute.contains(&opcode) {
            return;
        }
        let refuses_all = self.conduct.refuses_all;
        if let Some(error) = refuses_all.filter(|_| opcode != OpCode::Auth) {
            served.send(&Reply::failed(xid, self.zxid, error));
            served.closed = true;
            return;
        }
        let result = self.apply(served, body);
        let is_refusal = result.is_err();
        served.send(&match result {
            Ok(body) => Reply::new(xid, self.zxid, body),
            Err(error) => Reply::failed(xid, self.zxid, error),
        });
        let refused = opcode == OpCode::Sasl && is_refusal
            || opcode == OpCode::Auth && self.conduct.refuses_auth
            || opcode == OpCode::AddWatch && is_refusal;
        served.closed |= refused || opcode == OpCode::CloseSession;
    }

    fn apply(&mut self, served: &mut Served, body: RequestBody) -> Result<ReplyBody, ErrorCode> {
        let stat = Stat::default();
        Ok(match body {
            RequestBody::Create(request) => {
                self.change(served, &request.path, EventType::NodeCreated)?;
                let path = request.path;
                ReplyBody::Create { path }
            }
            RequestBody::Exists(read) => {
                served.watch(&read, WatcherType::Data);
                self.check(&read.path)?;
                ReplyBody::Stat(stat)
            }
            RequestBody::GetData(read) => {
                self.check(&read.path)?;
                served.watch(&read, WatcherType::Data);
                // The data is the path, so that an answer shows which request it belongs to.
                let data = Some(read.path.into_bytes());
                ReplyBody::Data { data, stat }
            }
            RequestBody::GetChildren(read) => {
                self.check(&read.path)?;
                served.watch(&read, WatcherType::Children);
                let children = Vec::new();
                ReplyBody::Children { children }
            }
            RequestBody::SetData(request) => {
                self.change(served, &request.path, EventType::NodeDataChanged)?;
                ReplyBody::Stat(stat)
            }
            RequestBody::RemoveWatches(request) => {
                match served.unwatch(&request.path, request.kind) {
                    true => ReplyBody::Empty,
                    false => return Err(ErrorCode::NoWatcher),
                }
            }
            RequestBody::AddWatch(request) => {
                if let Some(error) = self.conduct.refuses_trees {
                    return Err(error);
                }
                // As servers before 3.9: the last mode of a path replaces the others.
                served.data.remove(&request.path);
                served.children.remove(&request.path);
                served.trees.insert(request.path);
                ReplyBody::AddWatch(ErrorCode::Ok)
            }
            RequestBody::Auth(_) if self.conduct.refuses_auth => return Err(ErrorCode::AuthFailed),
            RequestBody::Sasl(request) => {
                let answer = self.conduct.sasl.ok_or(ErrorCode::AuthFailed)?;
                let token = answer(&request.token.unwrap_or_default())?;
                ReplyBody::Sasl(SaslResponse { token })
            }
            RequestBody::SetWatches(request) => self.set_watches(served, request)?,
            RequestBody::CloseSession => {
                served.session.map(|session| self.sessions.remove(&session));
                ReplyBody::Empty
            }
            RequestBody::Ping | RequestBody::Auth(_) => ReplyBody::Empty,
            RequestBody::Sync(request) => ReplyBody::Sync { path: request.path },
            other => panic!("the peer does not know {other:?}"),
        })
    }

    fn check(&self, path: &str) -> Result<(), ErrorCode> {
        let exists = self.znodes.contains(path);
        exists.then_some(()).ok_or(ErrorCode::NoNode)
    }

    /// Creates, deletes or writes a znode. `served` is the connection whose watches see it.
    pub(crate) fn change(
        &mut self,
        served: &mut Served,
        path: &str,
        kind: EventType,
    ) -> Result<(), ErrorCode> {
        match kind {
            EventType::NodeCreated => {
                let is_new = self.znodes.insert(path.to_owned());
                is_new.then_some(()).ok_or(ErrorCode::NodeExists)?;
            }
            _ => self.check(path)?,
        }
        self.zxid += 1;
        let mut events = vec![(path, kind)];
        if kind == EventType::NodeDeleted {
            self.znodes.remove(path);
        }
        if kind != EventType::NodeDataChanged {
            events.push((parent(path), EventType::NodeChildrenChanged));
        }
        for (path, kind) in events {
            self.history.push((self.zxid, path.to_owned(), kind));
            served.event(path, kind);
        }
        Ok(())
    }

    /// How often a path was created.
    pub(crate) fn created(&self, path: &str) -> usize {
        let creations = self.history.iter();
        let creations = creations.filter(|it| it.1 == path && it.2 == EventType::NodeCreated);
        creations.count()
    }

    /// As `DataTree.setWatches` does it.
    fn set_watches(
        &mut self,
        served: &mut Served,
        request: SetWatchesRequest,
    ) -> Result<ReplyBody, ErrorCode> {
        if let Some(error) = self.conduct.refuses_watches {
            return Err(error);
        }
        let seen = request.relative_zxid;
        let missed = self.history.partition_point(|(zxid, ..)| *zxid <= seen);
        let missed = &self.history[missed..];
        let has = |path: &str, kind| {
            let kinds = [kind, EventType::NodeCreated];
            missed
                .iter()
                .any(|it| it.1 == path && kinds.contains(&it.2))
        };
        let tables = [
            (request.data_watches, EventType::NodeDataChanged),
            (request.exist_watches, EventType::NodeCreated),
            (request.child_watches, EventType::NodeChildrenChanged),
        ];
        for (paths, kind) in tables {
            let table = match kind {
                EventType::NodeChildrenChanged => WatcherType::Children,
                _ => WatcherType::Data,
            };
            for path in paths {
                served.table(table).insert(path.clone());
                match (self.znodes.contains(&path), kind) {
                    (true, EventType::NodeCreated) => served.event(&path, kind),
                    (false, EventType::NodeCreated) => {}
                    (false, _) => served.event(&path, EventType::NodeDeleted),
                    (true, _) if has(&path, kind) => served.event(&path, kind),
                    (true, _) => {}
                }
            }
        }
        Ok(ReplyBody::Empty)
    }
}

fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// A frame that a server sends.
pub(crate) fn frame(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.encode_frame(&mut bytes);
    bytes
}

/// A reply to a ping, as the members send it.
pub(crate) fn ping_reply() -> Vec<u8> {
    frame(&Reply::new(xid::PING, 1, ReplyBody::Empty))
}

pub(crate) fn event(path: &str, kind: EventType) -> WatcherEvent {
    let (path, state) = (path.to_owned(), KeeperState::SyncConnected);
    WatcherEvent { kind, state, path }
}
