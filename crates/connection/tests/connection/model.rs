//! A model of an ensemble: znodes, sessions, and members that answer bytes with bytes.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, DEFAULT_FRAME_LIMIT, ErrorCode, EventType, FrameDecoder,
    KeeperState, MultiOperation, MultiResult, OpCode, ReadRequest, Reply, ReplyBody, Request,
    RequestBody, SetWatchesRequest, Stat, WatcherEvent, WatcherType, xid,
};

/// How the members behave. The default is a healthy ensemble.
#[derive(Clone, Debug)]
pub(crate) struct Conduct {
    /// The session timeout that is granted at most, in milliseconds.
    pub(crate) grants: i32,
    /// Requests of these kinds are never answered.
    pub(crate) mute: Vec<OpCode>,
    /// The connection is closed at a request of this kind.
    pub(crate) closes_at: Option<OpCode>,
    /// The error that `setWatches` is answered with.
    pub(crate) refuses_watches: Option<ErrorCode>,
    pub(crate) refuses_auth: bool,
    /// Each request but credentials is answered with this error, and the connection is closed.
    pub(crate) refuses_all: Option<ErrorCode>,
    pub(crate) read_only: bool,
    /// True if the members have no quorum: they close each connection in the handshake.
    pub(crate) no_quorum: bool,
}

impl Default for Conduct {
    fn default() -> Conduct {
        Conduct {
            grants: i32::MAX,
            mute: Vec::new(),
            closes_at: None,
            refuses_watches: None,
            refuses_auth: false,
            refuses_all: None,
            read_only: false,
            no_quorum: false,
        }
    }
}

/// The state that all members share.
#[derive(Debug, Default)]
pub(crate) struct Ensemble {
    pub(crate) conduct: Conduct,
    pub(crate) zxid: i64,
    pub(crate) znodes: BTreeMap<String, Stat>,
    /// The live sessions and their passwords.
    pub(crate) sessions: BTreeMap<i64, Vec<u8>>,
    pub(crate) last_session: i64,
    /// How often each path was created.
    pub(crate) created: BTreeMap<String, usize>,
    /// All events that a watch could have seen, with their zxids.
    pub(crate) history: Vec<(i64, String, EventType)>,
    /// All requests behind the handshake, in the order in which they came.
    pub(crate) requests: Vec<Request>,
    pub(crate) handshakes: Vec<ConnectRequest>,
}

/// One connection, at its member.
#[derive(Debug)]
pub(crate) struct Served {
    decoder: FrameDecoder,
    session: Option<i64>,
    data: BTreeSet<String>,
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
            children: BTreeSet::new(),
            to_client: Vec::new(),
            closed: false,
        }
    }

    /// The paths that the member watches for this connection.
    pub(crate) fn watched(&self) -> usize {
        self.data.len() + self.children.len()
    }

    fn send(&mut self, reply: &Reply) {
        reply.encode_frame(&mut self.to_client);
    }

    /// Sends the event to the client, if a watch waits for it.
    fn event(&mut self, path: &str, kind: EventType) {
        let (data, children) = match kind {
            EventType::NodeDeleted => (self.data.remove(path), self.children.remove(path)),
            EventType::NodeChildrenChanged => (false, self.children.remove(path)),
            _ => (self.data.remove(path), false),
        };
        if data || children {
            let path = path.to_owned();
            let state = KeeperState::SyncConnected;
            self.send(&Reply::notification(WatcherEvent { kind, state, path }));
        }
    }
}

impl Ensemble {
    /// Takes bytes of a client.
    pub(crate) fn receive(&mut self, served: &mut Served, bytes: &[u8]) {
        served.decoder.feed(bytes);
        while !served.closed {
            let frame = match served
                .decoder
                .next_frame()
                .expect("the client sends frames")
            {
                Some(frame) => frame.to_vec(),
                None => return,
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
        let mut respond = |timeout, session_id, password| {
            let read_only = Some(self.conduct.read_only);
            let protocol_version = 0;
            let response = ConnectResponse {
                protocol_version,
                timeout,
                session_id,
                password,
                read_only,
            };
            response.encode_frame(&mut served.to_client);
        };
        if self.conduct.no_quorum || request.last_zxid_seen > self.zxid {
            served.closed = true;
            return;
        }
        let granted = request.timeout.min(self.conduct.grants);
        if request.session_id == 0 {
            self.last_session += 1;
            let password = vec![self.last_session as u8; 16];
            self.sessions.insert(self.last_session, password.clone());
            respond(granted, self.last_session, password);
            served.session = Some(self.last_session);
        } else if self.sessions.get(&request.session_id) == Some(&request.password) {
            respond(granted, request.session_id, request.password);
            served.session = Some(request.session_id);
        } else {
            respond(0, 0, vec![0; 16]);
            served.closed = true;
        }
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
        served.send(&match result {
            Ok(body) => Reply::new(xid, self.zxid, body),
            Err(error) => Reply::failed(xid, self.zxid, error),
        });
        let refused = opcode == OpCode::Auth && self.conduct.refuses_auth;
        served.closed |= refused || opcode == OpCode::CloseSession;
    }

    fn apply(&mut self, served: &mut Served, body: RequestBody) -> Result<ReplyBody, ErrorCode> {
        match body {
            RequestBody::Create(request) => self.create(served, &request.path).map(|()| {
                let path = request.path;
                ReplyBody::Create { path }
            }),
            RequestBody::Create2(request) | RequestBody::CreateContainer(request) => {
                let created = self.create(served, &request.path);
                let created = created.and_then(|()| self.stat(&request.path));
                let path = request.path;
                created.map(|stat| ReplyBody::Create2 { path, stat })
            }
            RequestBody::Multi(operations) => {
                Ok(ReplyBody::Multi(self.transact(served, operations)))
            }
            RequestBody::Delete(request) => self
                .delete(served, &request.path)
                .map(|()| ReplyBody::Empty),
            RequestBody::SetData(request) => self.write(served, &request.path).map(ReplyBody::Stat),
            RequestBody::Exists(read) => {
                watch(&mut served.data, &read);
                self.stat(&read.path).map(ReplyBody::Stat)
            }
            RequestBody::GetData(read) => self.stat(&read.path).map(|stat| {
                watch(&mut served.data, &read);
                // The data is the path, so that an answer shows which request it belongs to.
                let data = Some(read.path.into_bytes());
                ReplyBody::Data { data, stat }
            }),
            RequestBody::GetChildren(read) => self.stat(&read.path).map(|_| {
                watch(&mut served.children, &read);
                let children = self.znodes.keys().filter(|path| parent(path) == read.path);
                let children = children.cloned().collect();
                ReplyBody::Children { children }
            }),
            RequestBody::RemoveWatches(request) => {
                let removed = match request.kind {
                    WatcherType::Data => served.data.remove(&request.path),
                    _ => served.children.remove(&request.path),
                };
                let removed = removed.then_some(ReplyBody::Empty);
                removed.ok_or(ErrorCode::NoWatcher)
            }
            RequestBody::Auth(_) if self.conduct.refuses_auth => Err(ErrorCode::AuthFailed),
            RequestBody::SetWatches(request) => self.set_watches(served, request),
            RequestBody::CloseSession => {
                served.session.map(|session| self.sessions.remove(&session));
                Ok(ReplyBody::Empty)
            }
            RequestBody::Ping | RequestBody::Auth(_) => Ok(ReplyBody::Empty),
            RequestBody::Sync(request) => Ok(ReplyBody::Sync { path: request.path }),
            other => panic!("the model does not know {other:?}"),
        }
    }

    /// Applies all creates and checks, or none.
    fn transact(
        &mut self,
        served: &mut Served,
        operations: Vec<MultiOperation>,
    ) -> Vec<MultiResult> {
        let refused = operations.iter().position(|operation| match operation {
            MultiOperation::Create(create) => self.znodes.contains_key(&create.path),
            MultiOperation::Check(check) => !self.znodes.contains_key(&check.path),
            other => panic!("the model does not know {other:?}"),
        });
        let apply = |(place, operation)| match (operation, refused) {
            (_, Some(refused)) => MultiResult::Error(match place {
                _ if place < refused => ErrorCode::Ok,
                _ if place > refused => ErrorCode::RuntimeInconsistency,
                _ => ErrorCode::NoNode,
            }),
            (MultiOperation::Create(create), None) => {
                self.create(served, &create.path).expect("it is absent");
                MultiResult::Create { path: create.path }
            }
            (_, None) => MultiResult::Check,
        };
        operations.into_iter().enumerate().map(apply).collect()
    }

    fn stat(&self, path: &str) -> Result<Stat, ErrorCode> {
        self.znodes.get(path).copied().ok_or(ErrorCode::NoNode)
    }

    fn happens(&mut self, served: &mut Served, path: &str, kind: EventType) {
        self.history.push((self.zxid, path.to_owned(), kind));
        served.event(path, kind);
    }

    /// Creates a znode. `served` is the connection whose watches see it.
    pub(crate) fn create(&mut self, served: &mut Served, path: &str) -> Result<(), ErrorCode> {
        if self.znodes.contains_key(path) {
            return Err(ErrorCode::NodeExists);
        }
        self.zxid += 1;
        let (czxid, mzxid, pzxid) = (self.zxid, self.zxid, self.zxid);
        let stat = Stat {
            czxid,
            mzxid,
            pzxid,
            ..Stat::default()
        };
        self.znodes.insert(path.to_owned(), stat);
        *self.created.entry(path.to_owned()).or_default() += 1;
        self.child_changed(path);
        self.happens(served, path, EventType::NodeCreated);
        self.happens(served, parent(path), EventType::NodeChildrenChanged);
        Ok(())
    }

    /// Deletes a znode.
    pub(crate) fn delete(&mut self, served: &mut Served, path: &str) -> Result<(), ErrorCode> {
        self.znodes.remove(path).ok_or(ErrorCode::NoNode)?;
        self.zxid += 1;
        self.child_changed(path);
        self.happens(served, path, EventType::NodeDeleted);
        self.happens(served, parent(path), EventType::NodeChildrenChanged);
        Ok(())
    }

    /// Writes the data of a znode.
    pub(crate) fn write(&mut self, served: &mut Served, path: &str) -> Result<Stat, ErrorCode> {
        let stat = self.znodes.get_mut(path).ok_or(ErrorCode::NoNode)?;
        self.zxid += 1;
        stat.mzxid = self.zxid;
        let stat = *stat;
        self.happens(served, path, EventType::NodeDataChanged);
        Ok(stat)
    }

    fn child_changed(&mut self, path: &str) {
        if let Some(stat) = self.znodes.get_mut(parent(path)) {
            stat.pzxid = self.zxid;
        }
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
        for path in request.data_watches {
            served.data.insert(path.clone());
            match self.znodes.get(&path) {
                None => served.event(&path, EventType::NodeDeleted),
                Some(stat) if stat.mzxid > seen => served.event(&path, EventType::NodeDataChanged),
                Some(_) => {}
            }
        }
        for path in request.exist_watches {
            served.data.insert(path.clone());
            if self.znodes.contains_key(&path) {
                served.event(&path, EventType::NodeCreated);
            }
        }
        for path in request.child_watches {
            served.children.insert(path.clone());
            match self.znodes.get(&path) {
                None => served.event(&path, EventType::NodeDeleted),
                Some(stat) if stat.pzxid > seen => {
                    served.event(&path, EventType::NodeChildrenChanged);
                }
                Some(_) => {}
            }
        }
        Ok(ReplyBody::Empty)
    }
}

fn watch(table: &mut BTreeSet<String>, read: &ReadRequest) {
    if read.watch {
        table.insert(read.path.clone());
    }
}

pub(crate) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// A reply to a ping, as the members send it.
pub(crate) fn ping_reply() -> Reply {
    Reply::new(xid::PING, 1, ReplyBody::Empty)
}
