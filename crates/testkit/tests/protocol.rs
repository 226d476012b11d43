//! The codec of `zookeeper-recipes-protocol`, with a real server and a client of another
//! project.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zookeeper_client::{Acls, Client, CreateMode as Mode, Error};
use zookeeper_recipes_protocol::*;
use zookeeper_recipes_testkit::proxy::{Fault, Proxy};
use zookeeper_recipes_testkit::{Server, ServerOptions};

const PATIENCE: Duration = Duration::from_secs(30);

async fn server() -> Server {
    let options = ServerOptions::new().extended_types();
    Server::start(options).await.expect("a server starts")
}

/// A connection of the codec alone.
struct Connection {
    stream: TcpStream,
    decoder: FrameDecoder,
    xid: i32,
    events: Vec<WatcherEvent>,
}

impl Connection {
    async fn open(server: &Server) -> Connection {
        let address = server.connect_string();
        let stream = TcpStream::connect(address).await.expect("a connection");
        let mut connection = Connection {
            stream,
            decoder: FrameDecoder::new(DEFAULT_FRAME_LIMIT),
            xid: 0,
            events: Vec::new(),
        };
        let mut frame = Vec::new();
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout: 10_000,
            session_id: 0,
            password: vec![0; PASSWORD_LENGTH],
            read_only: Some(false),
        };
        request.encode_frame(&mut frame);
        connection.send(&frame).await;
        let answer = connection.frame().await.expect("an answer");
        let response = ConnectResponse::decode(&answer).expect("a handshake");
        assert_eq!(response.password.len(), PASSWORD_LENGTH);
        assert_eq!(
            (response.timeout, response.read_only),
            (10_000, Some(false))
        );
        assert_ne!(response.session_id, 0);
        let mut again = Vec::new();
        response.encode_frame(&mut again);
        assert_eq!(again[FRAME_HEADER..], answer);
        connection
    }

    async fn send(&mut self, frame: &[u8]) {
        self.stream.write_all(frame).await.expect("it is written");
    }

    /// The body of the next frame. `None` if the server closes the connection.
    async fn frame(&mut self) -> Option<Vec<u8>> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(body) = self.decoder.next_frame().expect("valid lengths") {
                return Some(body.to_vec());
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut chunk));
            match read.await.expect("in time") {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.decoder.feed(&chunk[..count]),
            }
        }
    }

    /// Sends a request, and decodes its reply. `None` if the server closes the connection.
    ///
    /// All bytes of the reply must have a meaning: encoded again, it is the same.
    async fn exchange(&mut self, xid: i32, body: RequestBody) -> Option<Reply> {
        let opcode = body.opcode();
        let mut frame = Vec::new();
        Request { xid, body }.encode_frame(&mut frame);
        self.send(&frame).await;
        loop {
            let answer = self.frame().await?;
            let header = ReplyHeader::peek(&answer).expect("a header");
            let event = header.xid == xid::NOTIFICATION;
            let opcode = if event { OpCode::Notification } else { opcode };
            let reply = Reply::decode(&answer, opcode).expect("a reply");
            let mut again = Vec::new();
            reply.encode_frame(&mut again);
            assert_eq!(again[FRAME_HEADER..], answer, "{opcode:?}: {reply:?}");
            match reply.body {
                ReplyBody::Notification(event) => self.events.push(event),
                _ => {
                    assert_eq!(header.xid, xid, "{opcode:?}");
                    return Some(reply);
                }
            }
        }
    }

    async fn reply(&mut self, body: RequestBody) -> Reply {
        self.xid += 1;
        let opcode = body.opcode();
        let reply = self.exchange(self.xid, body).await;
        reply.unwrap_or_else(|| panic!("{opcode:?}: the connection is closed"))
    }

    async fn succeeds(&mut self, body: RequestBody) -> ReplyBody {
        let opcode = body.opcode();
        let reply = self.reply(body).await;
        assert_eq!(reply.header.error, ErrorCode::Ok, "{opcode:?}");
        reply.body
    }

    async fn fails(&mut self, body: RequestBody) -> ErrorCode {
        self.reply(body).await.header.error
    }
}

fn anyone() -> Vec<Acl> {
    vec![Acl {
        permissions: permission::ALL,
        id: Id {
            scheme: "world".to_owned(),
            id: "anyone".to_owned(),
        },
    }]
}

fn create(path: &str, mode: CreateMode) -> CreateRequest {
    CreateRequest {
        path: path.to_owned(),
        data: Some(b"data".to_vec()),
        acl: anyone(),
        mode,
    }
}

fn read(path: &str) -> ReadRequest {
    let path = path.to_owned();
    ReadRequest { path, watch: true }
}

fn path(path: &str) -> PathRequest {
    let path = path.to_owned();
    PathRequest { path }
}

fn delete(path: &str) -> DeleteRequest {
    let path = path.to_owned();
    DeleteRequest { path, version: -1 }
}

fn set_data(path: &str, data: Option<Vec<u8>>) -> SetDataRequest {
    SetDataRequest {
        path: path.to_owned(),
        data,
        version: -1,
    }
}

fn check(path: &str, version: i32) -> CheckRequest {
    let path = path.to_owned();
    CheckRequest { path, version }
}

fn watches(path: &str, kind: WatcherType) -> WatchesRequest {
    let path = path.to_owned();
    WatchesRequest { path, kind }
}

#[tokio::test]
async fn real_server_creates_reads_and_writes() {
    let server = server().await;
    let mut it = Connection::open(&server).await;
    let parent = RequestBody::Create(create("/a", CreateMode::Persistent));
    let created = ReplyBody::Create {
        path: "/a".to_owned(),
    };
    assert_eq!(it.succeeds(parent).await, created);
    let sequential = RequestBody::Create2(create("/a/s-", CreateMode::EphemeralSequential));
    let ReplyBody::Create2 { path: ours, stat } = it.succeeds(sequential).await else {
        panic!("another reply");
    };
    assert_eq!(ours, "/a/s-0000000000");
    assert_eq!(
        (stat.data_length, stat.num_children, stat.version),
        (4, 0, 0)
    );
    assert_ne!(stat.ephemeral_owner, 0);
    let container = create("/c", CreateMode::Container);
    it.succeeds(RequestBody::CreateContainer(container)).await;
    let CreateRequest { data, acl, .. } = create("", CreateMode::Persistent);
    let ttl = CreateTtlRequest {
        path: "/t".to_owned(),
        data,
        acl,
        mode: CreateMode::PersistentWithTtl,
        ttl: 60_000,
    };
    it.succeeds(RequestBody::CreateTtl(ttl)).await;

    let exists = it.succeeds(RequestBody::Exists(read(&ours))).await;
    assert_eq!(exists, ReplyBody::Stat(stat));
    let got = it.succeeds(RequestBody::GetData(read(&ours))).await;
    let data = Some(b"data".to_vec());
    assert_eq!(got, ReplyBody::Data { data, stat });
    let children = it.succeeds(RequestBody::GetChildren(read("/a"))).await;
    let names = vec!["s-0000000000".to_owned()];
    let expected = names.clone();
    assert_eq!(children, ReplyBody::Children { children: expected });
    let children = it.succeeds(RequestBody::GetChildren2(read("/a"))).await;
    assert!(
        matches!(&children, ReplyBody::Children2 { children, stat }
            if *children == names && stat.num_children == 1 && stat.cversion == 1),
        "{children:?}"
    );

    // Absent data is another thing than empty data.
    for data in [None, Some(Vec::new()), Some(b"new".to_vec())] {
        it.succeeds(RequestBody::SetData(set_data("/a", data.clone())))
            .await;
        let got = it.succeeds(RequestBody::GetData(read("/a"))).await;
        assert!(matches!(&got, ReplyBody::Data { data: came, .. } if *came == data));
    }
    it.succeeds(RequestBody::Delete(delete(&ours))).await;
    assert_eq!(
        it.fails(RequestBody::Delete(delete(&ours))).await,
        ErrorCode::NoNode
    );
    let again = RequestBody::Create(create("/a", CreateMode::Persistent));
    assert_eq!(it.fails(again).await, ErrorCode::NodeExists);

    let events: Vec<(EventType, &str)> = it
        .events
        .iter()
        .map(|event| (event.kind, event.path.as_str()))
        .collect();
    // Of each write of /a: the watch that the read before it has set.
    let expected = [
        (EventType::NodeDataChanged, "/a"),
        (EventType::NodeDataChanged, "/a"),
        (EventType::NodeDeleted, ours.as_str()),
        (EventType::NodeChildrenChanged, "/a"),
    ];
    assert_eq!(events, expected);
    assert!(
        it.events
            .iter()
            .all(|event| event.state == KeeperState::SyncConnected)
    );
}

#[tokio::test]
async fn real_server_answers_about_acls_watches_and_sessions() {
    let server = server().await;
    let mut it = Connection::open(&server).await;
    it.succeeds(RequestBody::Create(create("/a", CreateMode::Ephemeral)))
        .await;
    let acl = it.succeeds(RequestBody::GetAcl(path("/a"))).await;
    assert!(
        matches!(&acl, ReplyBody::Acl { acl, .. } if *acl == anyone()),
        "{acl:?}"
    );
    let set_acl = SetAclRequest {
        path: "/a".to_owned(),
        acl: anyone(),
        version: 0,
    };
    let set = it.succeeds(RequestBody::SetAcl(set_acl)).await;
    assert!(
        matches!(set, ReplyBody::Stat(stat) if stat.aversion == 1),
        "{set:?}"
    );
    let synced = ReplyBody::Sync {
        path: "/a".to_owned(),
    };
    assert_eq!(it.succeeds(RequestBody::Sync(path("/a"))).await, synced);

    it.succeeds(RequestBody::GetData(read("/a"))).await;
    let data = WatcherType::Data;
    let children = WatcherType::Children;
    it.succeeds(RequestBody::CheckWatches(watches("/a", data)))
        .await;
    it.succeeds(RequestBody::RemoveWatches(watches("/a", data)))
        .await;
    let absent = RequestBody::RemoveWatches(watches("/a", children));
    assert_eq!(it.fails(absent).await, ErrorCode::NoWatcher);
    let add_watch = AddWatchRequest {
        path: "/".to_owned(),
        mode: AddWatchMode::PersistentRecursive,
    };
    let added = it.succeeds(RequestBody::AddWatch(add_watch)).await;
    assert_eq!(added, ReplyBody::AddWatch(ErrorCode::Ok));

    let ephemerals = GetEphemeralsRequest { prefix: None };
    let ephemerals = it.succeeds(RequestBody::GetEphemerals(ephemerals)).await;
    let paths = vec!["/a".to_owned()];
    assert_eq!(ephemerals, ReplyBody::Ephemerals { paths });
    let number = RequestBody::GetAllChildrenNumber(path("/zookeeper"));
    let count = ReplyBody::AllChildrenNumber { count: 2 };
    assert_eq!(it.succeeds(number).await, count);
    let ReplyBody::WhoAmI { identities } = it.succeeds(RequestBody::WhoAmI).await else {
        panic!("another reply");
    };
    assert_eq!(identities[0].auth_scheme, "ip");
    let reconfig = ReconfigRequest {
        joining_servers: Some("server.9=localhost:1:2;3".to_owned()),
        leaving_servers: None,
        new_members: None,
        current_config_id: -1,
    };
    let refused = it.fails(RequestBody::Reconfig(reconfig)).await;
    assert_eq!(refused, ErrorCode::ReconfigDisabled);
    assert_eq!(
        it.succeeds(RequestBody::CloseSession).await,
        ReplyBody::Empty
    );
    assert_eq!(it.frame().await, None, "the server closes the connection");
}

#[tokio::test]
async fn real_server_answers_requests_with_numbers_of_their_own() {
    let server = server().await;
    let mut it = Connection::open(&server).await;
    let auth = |scheme: &str| {
        RequestBody::Auth(AuthRequest {
            kind: 0,
            scheme: scheme.to_owned(),
            auth: Some(b"user:password".to_vec()),
        })
    };
    let set_watches = SetWatchesRequest {
        relative_zxid: 0,
        data_watches: vec!["/absent".to_owned()],
        exist_watches: vec!["/awaited".to_owned(), "/zookeeper".to_owned()],
        child_watches: Vec::new(),
    };
    let set_watches2 = SetWatches2Request {
        relative_zxid: 0,
        data_watches: Vec::new(),
        exist_watches: Vec::new(),
        child_watches: vec!["/gone".to_owned()],
        persistent_watches: vec!["/zookeeper".to_owned()],
        persistent_recursive_watches: vec!["/".to_owned()],
    };
    for (xid, body) in [
        (xid::PING, RequestBody::Ping),
        (xid::AUTH, auth("digest")),
        (xid::SET_WATCHES, RequestBody::SetWatches(set_watches)),
        (xid::SET_WATCHES, RequestBody::SetWatches2(set_watches2)),
    ] {
        let reply = it.exchange(xid, body).await.expect("a reply");
        assert_eq!(
            (reply.header.error, reply.body),
            (ErrorCode::Ok, ReplyBody::Empty)
        );
    }
    let events: Vec<(EventType, &str)> = it
        .events
        .iter()
        .map(|event| (event.kind, event.path.as_str()))
        .collect();
    let expected = [
        (EventType::NodeDeleted, "/absent"),
        (EventType::NodeCreated, "/zookeeper"),
        (EventType::NodeDeleted, "/gone"),
    ];
    assert_eq!(events, expected);

    let ReplyBody::WhoAmI { identities } = it.succeeds(RequestBody::WhoAmI).await else {
        panic!("another reply");
    };
    let digest = identities.iter().find(|it| it.auth_scheme == "digest");
    assert_eq!(digest.map(|it| it.user.as_str()), Some("user"));

    let refused = it.exchange(xid::AUTH, auth("none-such")).await;
    let refused = refused.expect("a reply").header;
    assert_eq!((refused.zxid, refused.error), (0, ErrorCode::AuthFailed));
    assert_eq!(it.frame().await, None, "the server closes the connection");
}

/// The path of a create in a transaction. Servers before 3.8.2 answer a `create2` without the stat.
fn created(result: &MultiResult) -> Option<&str> {
    match result {
        MultiResult::Create { path } | MultiResult::Create2 { path, .. } => Some(path),
        _ => None,
    }
}

#[tokio::test]
async fn real_server_answers_transactions() {
    let server = server().await;
    let mut it = Connection::open(&server).await;
    let writes = vec![
        MultiOperation::Create(create("/a", CreateMode::Persistent)),
        MultiOperation::Create2(create("/a/b", CreateMode::Persistent)),
        MultiOperation::CreateContainer(create("/c", CreateMode::Container)),
        MultiOperation::SetData(set_data("/a", None)),
        MultiOperation::Check(check("/a", 1)),
        MultiOperation::Delete(delete("/a/b")),
    ];
    let ReplyBody::Multi(results) = it.succeeds(RequestBody::Multi(writes)).await else {
        panic!("another reply");
    };
    let created: Vec<Option<&str>> = results[..3].iter().map(created).collect();
    assert_eq!(created, [Some("/a"), Some("/a/b"), Some("/c")]);
    assert!(matches!(&results[3], MultiResult::SetData { stat } if stat.version == 1));
    assert_eq!(results[4..], [MultiResult::Check, MultiResult::Delete]);

    let failing = vec![
        MultiOperation::Create(create("/d", CreateMode::Persistent)),
        MultiOperation::Check(check("/a", 77)),
        MultiOperation::Delete(delete("/a")),
    ];
    let results = it.succeeds(RequestBody::Multi(failing)).await;
    let errors = [
        ErrorCode::Ok,
        ErrorCode::BadVersion,
        ErrorCode::RuntimeInconsistency,
    ];
    let errors = errors.map(MultiResult::Error).to_vec();
    assert_eq!(results, ReplyBody::Multi(errors));

    let reads = vec![
        MultiOperation::GetData(read("/a")),
        MultiOperation::GetChildren(read("/a")),
        MultiOperation::GetData(read("/none-such")),
    ];
    let ReplyBody::Multi(results) = it.succeeds(RequestBody::MultiRead(reads)).await else {
        panic!("another reply");
    };
    assert!(matches!(
        &results[0],
        MultiResult::GetData { data: None, .. }
    ));
    let children = Vec::new();
    assert_eq!(results[1], MultiResult::GetChildren { children });
    assert_eq!(results[2], MultiResult::Error(ErrorCode::NoNode));

    let none = it.succeeds(RequestBody::Multi(Vec::new())).await;
    assert_eq!(none, ReplyBody::Multi(Vec::new()));
}

/// Apache's decoder and the codec agree on what is no request.
#[tokio::test]
async fn real_server_and_broken_requests() {
    let server = server().await;
    let mut it = Connection::open(&server).await;
    // A path of length -1. The codec does not encode it, and does not decode it either.
    let broken = [&[0, 0, 0, 13, 0, 0, 0, 1, 0, 0, 0, 3][..], &[0xff; 4], &[0]].concat();
    assert_eq!(
        Request::decode(&broken[FRAME_HEADER..]),
        Err(DecodeError::NullString)
    );
    it.send(&broken).await;
    let answer = it.frame().await.expect("a reply");
    let header = ReplyHeader::peek(&answer).expect("a header");
    assert_eq!((header.xid, header.error), (1, ErrorCode::MarshallingError));

    // Bytes behind the message are ignored.
    let mut frame = Vec::new();
    let sync = RequestBody::Sync(path("/"));
    Request { xid: 2, body: sync }.encode_frame(&mut frame);
    frame.extend([7; 5]);
    let length = (frame.len() - FRAME_HEADER) as u32;
    frame[..FRAME_HEADER].copy_from_slice(&length.to_be_bytes());
    assert!(Request::decode(&frame[FRAME_HEADER..]).is_ok());
    it.send(&frame).await;
    let answer = it.frame().await.expect("a reply");
    let header = ReplyHeader::peek(&answer).expect("a header");
    assert_eq!((header.xid, header.error), (2, ErrorCode::Ok));

    // The limit of a frame is the default of the decoder.
    let longest = (DEFAULT_FRAME_LIMIT as u32 + 1).to_be_bytes();
    it.send(&longest).await;
    assert_eq!(it.frame().await, None, "the server closes the connection");
}

/// What a client sends is decoded whole: encoded again, it is the same.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_real_client_are_decoded_whole() -> Result<(), Error> {
    let server = server().await;
    let proxy = Proxy::start(server.connect_string())
        .await
        .expect("a proxy starts");
    let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let frames = seen.clone();
    proxy.fault(Fault::on_any().repeatedly().request_replaced(move |frame| {
        frames.lock().expect("no panic within").push(frame.to_vec());
        frame.to_vec()
    }));
    let client = Client::connector()
        .with_auth("digest", b"user:password")
        .connect(&proxy.connect_string())
        .await?;
    let persistent = Mode::Persistent.with_acls(Acls::anyone_all());
    let ephemeral = Mode::EphemeralSequential.with_acls(Acls::creator_all());
    client.create("/a", b"data", &persistent).await?;
    client.create("/a/s-", b"", &ephemeral).await?;
    let (_, _, watcher) = client.get_and_watch_data("/a").await?;
    client.list_children("/a").await?;
    client.get_children("/a").await?;
    client.check_stat("/none-such").await?;
    client.get_acl("/a").await?;
    client.sync("/a").await?;
    client.set_data("/a", b"new", None).await?;
    watcher.changed().await;
    let mut multi = client.new_multi_writer();
    multi.add_check_version("/a", 1)?;
    multi.add_create("/b", b"", &persistent)?;
    multi.add_set_data("/b", b"x", None)?;
    multi.add_delete("/b", None)?;
    multi.commit().await?;
    let mut reads = client.new_multi_reader();
    reads.add_get_data("/a")?;
    reads.add_get_children("/a")?;
    reads.commit().await?;
    drop(
        client
            .watch("/a", zookeeper_client::AddWatchMode::Persistent)
            .await?,
    );
    client.delete("/a/s-0000000000", None).await?;

    let seen = seen.lock().expect("no panic within").clone();
    let mut opcodes: Vec<OpCode> = Vec::new();
    for (index, frame) in seen.iter().enumerate() {
        let body = &frame[FRAME_HEADER..];
        let mut again = Vec::new();
        if index == 0 {
            let handshake = ConnectRequest::decode(body).expect("a handshake");
            handshake.encode_frame(&mut again);
        } else {
            let request = Request::decode(body).expect("a request");
            opcodes.push(request.body.opcode());
            request.encode_frame(&mut again);
        }
        assert_eq!(again, *frame, "frame {index}");
    }
    for sent in [OpCode::Auth, OpCode::Multi, OpCode::MultiRead, OpCode::Sync] {
        assert!(opcodes.contains(&sent), "{sent:?} in {opcodes:?}");
    }
    Ok(())
}
