//! The same bytes as Apache's classes, in both directions.

use std::collections::BTreeSet;

use zookeeper_recipes_protocol::*;

use crate::apache::golden;
use crate::bytes::{body, reply_frame, request_frame};

fn acl() -> Vec<Acl> {
    let entry = |permissions, scheme: &str, id: &str| Acl {
        permissions,
        id: AuthId::new(scheme, id),
    };
    vec![
        entry(Permission::ALL, "world", "anyone"),
        entry(Permission::READ | Permission::CREATE, "digest", "u:p"),
    ]
}

fn stat() -> Stat {
    Stat {
        czxid: 1,
        mzxid: 2,
        ctime: 3,
        mtime: 4,
        version: 5,
        cversion: 6,
        aversion: 7,
        ephemeral_owner: 8,
        data_length: 9,
        num_children: 10,
        pzxid: 11,
    }
}

fn password() -> Vec<u8> {
    (1..=16).collect()
}

fn create(path: &str, data: &str, mode: CreateMode) -> CreateRequest {
    CreateRequest {
        path: path.to_owned(),
        data: Some(data.into()),
        acl: acl(),
        mode,
    }
}

fn create_ttl(path: &str, data: &str, ttl: i64) -> CreateTtlRequest {
    CreateTtlRequest {
        path: path.to_owned(),
        data: Some(data.into()),
        acl: acl(),
        mode: CreateMode::PersistentWithTtl,
        ttl,
    }
}

fn delete(path: &str, version: i32) -> DeleteRequest {
    let path = path.to_owned();
    DeleteRequest { path, version }
}

fn check(path: &str, version: i32) -> CheckRequest {
    let path = path.to_owned();
    CheckRequest { path, version }
}

fn set_data(path: &str, data: &str, version: i32) -> SetDataRequest {
    SetDataRequest {
        path: path.to_owned(),
        data: Some(data.into()),
        version,
    }
}

fn read(path: &str, watch: bool) -> ReadRequest {
    let path = path.to_owned();
    ReadRequest { path, watch }
}

fn path(path: &str) -> PathRequest {
    let path = path.to_owned();
    PathRequest { path }
}

fn watches(path: &str, kind: WatcherType) -> WatchesRequest {
    let path = path.to_owned();
    WatchesRequest { path, kind }
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

fn writes_and_reads() -> Vec<(&'static str, i32, RequestBody)> {
    use RequestBody as Body;
    let null_data = CreateRequest {
        path: "/a".to_owned(),
        data: None,
        acl: Vec::new(),
        mode: CreateMode::Persistent,
    };
    let sequential = CreateMode::EphemeralSequential;
    let set_acl = SetAclRequest {
        path: "/j".to_owned(),
        acl: acl(),
        version: 3,
    };
    vec![
        ("create", 1, Body::Create(create("/a", "data", sequential))),
        ("create_null_data", 1, Body::Create(null_data)),
        (
            "create2",
            2,
            Body::Create2(create("/b", "", CreateMode::Ephemeral)),
        ),
        (
            "create_container",
            3,
            Body::CreateContainer(create("/c", "x", CreateMode::Container)),
        ),
        (
            "create_ttl",
            4,
            Body::CreateTtl(create_ttl("/d", "y", 0x12_3456_7890)),
        ),
        ("delete", 5, Body::Delete(delete("/e", 7))),
        ("exists", 6, Body::Exists(read("/f", true))),
        ("get_data", 7, Body::GetData(read("/g", false))),
        ("set_data", 8, Body::SetData(set_data("/h", "new", -1))),
        ("get_acl", 9, Body::GetAcl(path("/i"))),
        ("set_acl", 10, Body::SetAcl(set_acl)),
        ("get_children", 11, Body::GetChildren(read("/k", true))),
        ("get_children2", 12, Body::GetChildren2(read("/l", false))),
        ("sync", 13, Body::Sync(path("/mé"))),
        ("check", 14, Body::Check(check("/n", 4))),
        ("multi", 24, Body::Multi(operations())),
        (
            "multi_read",
            25,
            Body::MultiRead(vec![
                MultiOperation::GetData(read("/g", false)),
                MultiOperation::GetChildren(read("/k", false)),
            ]),
        ),
    ]
}

fn operations() -> Vec<MultiOperation> {
    vec![
        MultiOperation::Create(create("/a", "1", CreateMode::EphemeralSequential)),
        MultiOperation::CreateContainer(create("/c", "2", CreateMode::Container)),
        MultiOperation::CreateTtl(create_ttl("/t", "3", 77)),
        MultiOperation::Delete(delete("/d", 2)),
        MultiOperation::SetData(set_data("/s", "4", 3)),
        MultiOperation::Check(check("/v", 4)),
    ]
}

fn watches_alone() -> Vec<(&'static str, i32, RequestBody)> {
    use RequestBody as Body;
    let once = SetWatchesRequest {
        relative_zxid: 0x55,
        data_watches: strings(&["/1"]),
        exist_watches: strings(&["/2", "/22"]),
        child_watches: strings(&["/3"]),
    };
    let all = SetWatches2Request {
        relative_zxid: 0x56,
        data_watches: strings(&["/1"]),
        exist_watches: strings(&["/2"]),
        child_watches: strings(&["/3"]),
        persistent_watches: strings(&["/4"]),
        persistent_recursive_watches: strings(&["/5", "/6"]),
    };
    let (check, remove) = (
        watches("/o", WatcherType::Data),
        watches("/p", WatcherType::Any),
    );
    let add_watch = AddWatchRequest {
        path: "/s".to_owned(),
        mode: AddWatchMode::PersistentRecursive,
    };
    vec![
        ("check_watches", 16, Body::CheckWatches(check)),
        ("remove_watches", 17, Body::RemoveWatches(remove)),
        ("set_watches", xid::SET_WATCHES, Body::SetWatches(once)),
        ("set_watches2", xid::SET_WATCHES, Body::SetWatches2(all)),
        ("add_watch", 21, Body::AddWatch(add_watch)),
    ]
}

fn sessions() -> Vec<(&'static str, i32, RequestBody)> {
    use RequestBody as Body;
    let reconfig = ReconfigRequest {
        joining_servers: Some("server.4=x".to_owned()),
        leaving_servers: None,
        new_members: None,
        current_config_id: 0x99,
    };
    let auth = AuthRequest {
        kind: 0,
        scheme: "digest".to_owned(),
        auth: Some(b"u:p".to_vec()),
    };
    let sasl = SaslRequest {
        token: Some(b"tok".to_vec()),
    };
    let ephemerals = GetEphemeralsRequest {
        prefix: Some("/q".to_owned()),
    };
    let count = Body::GetAllChildrenNumber(path("/r"));
    vec![
        ("ping", xid::PING, Body::Ping),
        ("reconfig", 15, Body::Reconfig(reconfig)),
        ("auth", xid::AUTH, Body::Auth(auth)),
        ("sasl", 18, Body::Sasl(sasl)),
        ("get_ephemerals", 19, Body::GetEphemerals(ephemerals)),
        ("get_all_children_number", 20, count),
        ("who_am_i", 22, Body::WhoAmI),
        ("close_session", 23, Body::CloseSession),
    ]
}

fn requests() -> impl Iterator<Item = (&'static str, Request)> {
    writes_and_reads()
        .into_iter()
        .chain(watches_alone())
        .chain(sessions())
        .map(|(name, xid, body)| (name, Request { xid, body }))
}

#[test]
fn requests_are_apaches() {
    let golden = golden();
    for (name, request) in requests() {
        let apache = &golden[name];
        assert_eq!(&request_frame(&request), apache, "{name}");
        let header = RequestHeader::peek(&body(apache)).expect("a header");
        assert_eq!(
            (header.xid, header.opcode),
            (request.xid, request.body.opcode())
        );
        assert_eq!(Request::decode(&body(apache)), Ok(request), "{name}");
    }
}

fn is_of_no_client(opcode: OpCode) -> bool {
    matches!(
        opcode,
        OpCode::Notification
            | OpCode::DeleteContainer
            | OpCode::CreateSession
            | OpCode::Error
            | OpCode::Unknown(_)
    )
}

#[test]
fn bytes_behind_a_request_are_ignored_and_a_request_that_is_cut_short_is_an_error() {
    let golden = golden();
    for (name, request) in requests() {
        let mut body = body(&golden[name]);
        for length in 0..body.len() {
            let cut = Request::decode(&body[..length]);
            assert!(cut.is_err(), "{length} bytes of {name}: {cut:?}");
        }
        body.extend([0, 0xff, 1]);
        assert_eq!(Request::decode(&body), Ok(request), "{name}");
    }
}

#[test]
fn each_operation_of_a_client_is_compared() {
    let compared: BTreeSet<OpCode> = requests()
        .map(|(_, request)| request.body.opcode())
        .collect();
    let known: BTreeSet<OpCode> = (-20..200)
        .map(OpCode::from)
        .filter(|opcode| !is_of_no_client(*opcode))
        .collect();
    assert_eq!(compared, known);
}

fn results() -> Vec<MultiResult> {
    let path = |path: &str| path.to_owned();
    vec![
        MultiResult::Create { path: path("/a") },
        MultiResult::Create2 {
            path: path("/b"),
            stat: stat(),
        },
        MultiResult::Delete,
        MultiResult::SetData { stat: stat() },
        MultiResult::Check,
    ]
}

fn read_results() -> Vec<MultiResult> {
    vec![
        MultiResult::GetData {
            data: Some(b"g".to_vec()),
            stat: stat(),
        },
        MultiResult::GetChildren {
            children: strings(&["k"]),
        },
        MultiResult::Error(ErrorCode::NoNode),
    ]
}

/// Names, the operations they answer, xids, and bodies. Each zxid is 0x100 more than the xid.
fn replies_of_znodes() -> Vec<(&'static str, OpCode, i32, ReplyBody)> {
    use ReplyBody as Body;
    let create = Body::Create {
        path: "/a0000000001".to_owned(),
    };
    let create2 = Body::Create2 {
        path: "/b".to_owned(),
        stat: stat(),
    };
    let data = Body::Data {
        data: Some(b"data".to_vec()),
        stat: stat(),
    };
    let null_data = Body::Data {
        data: None,
        stat: stat(),
    };
    let acl = Body::Acl {
        acl: acl(),
        stat: stat(),
    };
    let children = strings(&["x", "yy"]);
    let children2 = Body::Children2 {
        children: children.clone(),
        stat: stat(),
    };
    vec![
        ("reply_create", OpCode::Create, 1, create),
        ("reply_create2", OpCode::Create2, 2, create2),
        ("reply_empty", OpCode::Delete, 5, Body::Empty),
        ("reply_stat", OpCode::Exists, 6, Body::Stat(stat())),
        ("reply_data", OpCode::GetData, 7, data),
        ("reply_null_data", OpCode::GetData, 7, null_data),
        ("reply_acl", OpCode::GetAcl, 9, acl),
        (
            "reply_children",
            OpCode::GetChildren,
            11,
            Body::Children { children },
        ),
        ("reply_children2", OpCode::GetChildren2, 12, children2),
    ]
}

fn other_replies() -> Vec<(&'static str, OpCode, i32, ReplyBody)> {
    use ReplyBody as Body;
    let sync = Body::Sync {
        path: "/m".to_owned(),
    };
    let sasl = Body::Sasl(SaslResponse {
        token: Some(b"tok".to_vec()),
    });
    let ephemerals = Body::Ephemerals {
        paths: strings(&["/e1", "/e2"]),
    };
    let number = Body::AllChildrenNumber { count: 42 };
    let who_am_i = Body::WhoAmI {
        identities: vec![ClientInfo {
            auth_scheme: "ip".to_owned(),
            user: "127.0.0.1".to_owned(),
        }],
    };
    let failed = [
        ErrorCode::Ok,
        ErrorCode::BadVersion,
        ErrorCode::RuntimeInconsistency,
    ];
    let failed = failed.map(MultiResult::Error).to_vec();
    vec![
        ("reply_sync", OpCode::Sync, 13, sync),
        ("reply_sasl", OpCode::Sasl, 18, sasl),
        ("reply_ephemerals", OpCode::GetEphemerals, 19, ephemerals),
        (
            "reply_all_children_number",
            OpCode::GetAllChildrenNumber,
            20,
            number,
        ),
        (
            "reply_add_watch",
            OpCode::AddWatch,
            21,
            Body::AddWatch(ErrorCode::Ok),
        ),
        ("reply_who_am_i", OpCode::WhoAmI, 22, who_am_i),
        ("reply_multi", OpCode::Multi, 24, Body::Multi(results())),
        ("reply_multi_failed", OpCode::Multi, 25, Body::Multi(failed)),
        (
            "reply_multi_read",
            OpCode::MultiRead,
            26,
            Body::Multi(read_results()),
        ),
    ]
}

fn replies() -> Vec<(&'static str, OpCode, Reply)> {
    let event = WatcherEvent {
        kind: EventType::NodeChildrenChanged,
        state: KeeperState::SyncConnected,
        path: "/w".to_owned(),
    };
    let no_node = Reply::failed(6, 0x106, ErrorCode::NoNode);
    let mut replies = vec![
        ("reply_no_node", OpCode::Exists, no_node),
        (
            "notification",
            OpCode::Notification,
            Reply::notification(event),
        ),
    ];
    let succeeded = replies_of_znodes().into_iter().chain(other_replies());
    replies.extend(succeeded.map(|(name, opcode, xid, body)| {
        let reply = Reply::new(xid, i64::from(xid) + 0x100, body);
        (name, opcode, reply)
    }));
    replies
}

#[test]
fn replies_are_apaches() {
    let golden = golden();
    for (name, opcode, reply) in replies() {
        let apache = &golden[name];
        assert_eq!(&reply_frame(&reply), apache, "{name}");
        assert_eq!(ReplyHeader::peek(&body(apache)), Ok(reply.header), "{name}");
        assert_eq!(Reply::decode(&body(apache), opcode), Ok(reply), "{name}");
    }
}

#[test]
fn handshakes_are_apaches() {
    let golden = golden();
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0x1122_3344_5566_7788,
        timeout: 6000,
        session_id: 0x0102_0304_0506_0708,
        password: password(),
        read_only: Some(true),
    };
    let mut frame = Vec::new();
    request.encode_frame(&mut frame);
    assert_eq!(frame, golden["connect_request"]);
    assert_eq!(ConnectRequest::decode(&body(&frame)), Ok(request.clone()));

    let response = ConnectResponse {
        protocol_version: 0,
        timeout: 4000,
        session_id: 0x0102_0304_0506_0708,
        password: password(),
        read_only: Some(false),
    };
    let mut frame = Vec::new();
    response.encode_frame(&mut frame);
    assert_eq!(frame, golden["connect_response"]);
    assert_eq!(ConnectResponse::decode(&body(&frame)), Ok(response));

    // A client before 3.4 does not send the last byte.
    let old = &body(&golden["connect_request"])[..44];
    let old = ConnectRequest::decode(old).expect("a handshake");
    let read_only = None;
    assert_eq!(
        old,
        ConnectRequest {
            read_only,
            ..request
        }
    );
}

#[test]
fn each_golden_frame_is_compared() {
    let mut compared: BTreeSet<&str> = requests().map(|(name, _)| name).collect();
    compared.extend(replies().into_iter().map(|(name, ..)| name));
    compared.extend(["connect_request", "connect_response"]);
    let all: BTreeSet<&str> = golden().into_keys().collect();
    assert_eq!(compared, all);
}
