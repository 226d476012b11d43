//! Any message of the protocol.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use zookeeper_recipes_protocol::{
    Acl, AddWatchRequest, AuthId, AuthRequest, CheckRequest, ClientInfo, ConnectRequest,
    ConnectResponse, CreateRequest, CreateTtlRequest, DeleteRequest, ErrorCode,
    GetEphemeralsRequest, MultiOperation, MultiResult, OpCode, PathRequest, Permission,
    ReadRequest, ReconfigRequest, Reply, ReplyBody, Request, RequestBody, SaslRequest,
    SaslResponse, SetAclRequest, SetDataRequest, SetWatches2Request, SetWatchesRequest, Stat,
    WatcherEvent, WatchesRequest,
};

/// Numbers that have a meaning, and others.
fn code<T: From<i32> + std::fmt::Debug>() -> impl Strategy<Value = T> {
    prop_oneof![-130..120, any::<i32>()].prop_map(T::from)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["/[a-zé]{0,6}(/[a-z]{1,3})?", ".{0,8}"]
}

fn data() -> impl Strategy<Value = Option<Vec<u8>>> {
    option::of(vec(any::<u8>(), 0..24))
}

fn acl() -> impl Strategy<Value = Vec<Acl>> {
    let entry = (any::<i32>(), text(), text()).prop_map(|(bits, scheme, id)| Acl {
        permissions: Permission::from_bits(bits),
        id: AuthId::new(&scheme, &id),
    });
    vec(entry, 0..4)
}

pub(crate) fn stat() -> impl Strategy<Value = Stat> {
    let long = any::<i64>;
    let int = any::<i32>;
    (
        [long(), long(), long(), long(), long(), long()],
        [int(), int(), int(), int(), int()],
    )
        .prop_map(|(longs, ints)| Stat {
            czxid: longs[0],
            mzxid: longs[1],
            ctime: longs[2],
            mtime: longs[3],
            version: ints[0],
            cversion: ints[1],
            aversion: ints[2],
            ephemeral_owner: longs[4],
            data_length: ints[3],
            num_children: ints[4],
            pzxid: longs[5],
        })
}

fn create() -> impl Strategy<Value = CreateRequest> {
    (text(), data(), acl(), code()).prop_map(|(path, data, acl, mode)| CreateRequest {
        path,
        data,
        acl,
        mode,
    })
}

fn create_ttl() -> impl Strategy<Value = CreateTtlRequest> {
    (create(), any::<i64>()).prop_map(|(create, ttl)| CreateTtlRequest {
        path: create.path,
        data: create.data,
        acl: create.acl,
        mode: create.mode,
        ttl,
    })
}

fn read() -> impl Strategy<Value = ReadRequest> {
    (text(), any::<bool>()).prop_map(|(path, watch)| ReadRequest { path, watch })
}

fn path() -> impl Strategy<Value = PathRequest> {
    text().prop_map(|path| PathRequest { path })
}

fn delete() -> impl Strategy<Value = DeleteRequest> {
    (text(), any::<i32>()).prop_map(|(path, version)| DeleteRequest { path, version })
}

fn check() -> impl Strategy<Value = CheckRequest> {
    (text(), any::<i32>()).prop_map(|(path, version)| CheckRequest { path, version })
}

fn set_data() -> impl Strategy<Value = SetDataRequest> {
    (text(), data(), any::<i32>()).prop_map(|(path, data, version)| SetDataRequest {
        path,
        data,
        version,
    })
}

fn set_acl() -> impl Strategy<Value = SetAclRequest> {
    (text(), acl(), any::<i32>()).prop_map(|(path, acl, version)| SetAclRequest {
        path,
        acl,
        version,
    })
}

fn watches() -> impl Strategy<Value = WatchesRequest> {
    (text(), code()).prop_map(|(path, kind)| WatchesRequest { path, kind })
}

fn set_watches2() -> impl Strategy<Value = SetWatches2Request> {
    let paths = || vec(text(), 0..3);
    let lists = [paths(), paths(), paths(), paths(), paths()];
    (any::<i64>(), lists).prop_map(|(relative_zxid, lists)| {
        let [data, exist, child, persistent, recursive] = lists;
        SetWatches2Request {
            relative_zxid,
            data_watches: data,
            exist_watches: exist,
            child_watches: child,
            persistent_watches: persistent,
            persistent_recursive_watches: recursive,
        }
    })
}

fn set_watches() -> impl Strategy<Value = SetWatchesRequest> {
    set_watches2().prop_map(|all| SetWatchesRequest {
        relative_zxid: all.relative_zxid,
        data_watches: all.data_watches,
        exist_watches: all.exist_watches,
        child_watches: all.child_watches,
    })
}

fn write_operation() -> impl Strategy<Value = MultiOperation> {
    prop_oneof![
        create().prop_map(MultiOperation::Create),
        create().prop_map(MultiOperation::Create2),
        create().prop_map(MultiOperation::CreateContainer),
        create_ttl().prop_map(MultiOperation::CreateTtl),
        delete().prop_map(MultiOperation::Delete),
        set_data().prop_map(MultiOperation::SetData),
        check().prop_map(MultiOperation::Check),
    ]
}

fn read_operation() -> impl Strategy<Value = MultiOperation> {
    prop_oneof![
        read().prop_map(MultiOperation::GetData),
        read().prop_map(MultiOperation::GetChildren),
    ]
}

fn write_or_read() -> BoxedStrategy<RequestBody> {
    prop_oneof![
        create().prop_map(RequestBody::Create),
        create().prop_map(RequestBody::Create2),
        create().prop_map(RequestBody::CreateContainer),
        create_ttl().prop_map(RequestBody::CreateTtl),
        delete().prop_map(RequestBody::Delete),
        read().prop_map(RequestBody::Exists),
        read().prop_map(RequestBody::GetData),
        read().prop_map(RequestBody::GetChildren),
        read().prop_map(RequestBody::GetChildren2),
        set_data().prop_map(RequestBody::SetData),
    ]
    .boxed()
}

fn of_one_path() -> BoxedStrategy<RequestBody> {
    let add_watch = (text(), code()).prop_map(|(path, mode)| AddWatchRequest { path, mode });
    prop_oneof![
        path().prop_map(RequestBody::GetAcl),
        path().prop_map(RequestBody::Sync),
        path().prop_map(RequestBody::GetAllChildrenNumber),
        set_acl().prop_map(RequestBody::SetAcl),
        check().prop_map(RequestBody::Check),
        watches().prop_map(RequestBody::CheckWatches),
        watches().prop_map(RequestBody::RemoveWatches),
        add_watch.prop_map(RequestBody::AddWatch),
        option::of(text())
            .prop_map(|prefix| RequestBody::GetEphemerals(GetEphemeralsRequest { prefix })),
    ]
    .boxed()
}

fn of_many_paths_or_none() -> BoxedStrategy<RequestBody> {
    let operations = || prop_oneof![vec(write_operation(), 0..5), vec(read_operation(), 0..5)];
    let servers = || option::of(text());
    let reconfig = (servers(), servers(), servers(), any::<i64>()).prop_map(
        |(joining_servers, leaving_servers, new_members, current_config_id)| ReconfigRequest {
            joining_servers,
            leaving_servers,
            new_members,
            current_config_id,
        },
    );
    let auth = (any::<i32>(), text(), data()).prop_map(|(kind, scheme, auth)| AuthRequest {
        kind,
        scheme,
        auth,
    });
    let other = (code::<OpCode>(), vec(any::<u8>(), 0..24))
        .prop_filter("a number of no other request", |(opcode, _)| {
            is_of_no_client(*opcode)
        })
        .prop_map(|(opcode, bytes)| RequestBody::Other { opcode, bytes });
    prop_oneof![
        operations().prop_map(RequestBody::Multi),
        operations().prop_map(RequestBody::MultiRead),
        reconfig.prop_map(RequestBody::Reconfig),
        auth.prop_map(RequestBody::Auth),
        data().prop_map(|token| RequestBody::Sasl(SaslRequest { token })),
        set_watches().prop_map(RequestBody::SetWatches),
        set_watches2().prop_map(RequestBody::SetWatches2),
        Just(RequestBody::Ping),
        Just(RequestBody::WhoAmI),
        Just(RequestBody::CloseSession),
        other,
    ]
    .boxed()
}

/// True for the numbers that no request of a client has.
pub(crate) fn is_of_no_client(opcode: OpCode) -> bool {
    matches!(
        opcode,
        OpCode::Notification
            | OpCode::DeleteContainer
            | OpCode::CreateSession
            | OpCode::Error
            | OpCode::Unknown(_)
    )
}

/// Any request.
pub(crate) fn request() -> impl Strategy<Value = Request> {
    let body = prop_oneof![write_or_read(), of_one_path(), of_many_paths_or_none()];
    (any::<i32>(), body).prop_map(|(xid, body)| Request { xid, body })
}

fn result() -> impl Strategy<Value = MultiResult> {
    prop_oneof![
        text().prop_map(|path| MultiResult::Create { path }),
        (text(), stat()).prop_map(|(path, stat)| MultiResult::Create2 { path, stat }),
        Just(MultiResult::Delete),
        stat().prop_map(|stat| MultiResult::SetData { stat }),
        Just(MultiResult::Check),
        (data(), stat()).prop_map(|(data, stat)| MultiResult::GetData { data, stat }),
        vec(text(), 0..3).prop_map(|children| MultiResult::GetChildren { children }),
        code().prop_map(MultiResult::Error),
    ]
}

fn reply_with_stat() -> BoxedStrategy<(OpCode, ReplyBody)> {
    prop_oneof![
        (
            prop_oneof![
                Just(OpCode::Create2),
                Just(OpCode::CreateContainer),
                Just(OpCode::CreateTtl)
            ],
            text(),
            stat()
        )
            .prop_map(|(opcode, path, stat)| (opcode, ReplyBody::Create2 { path, stat })),
        (
            prop_oneof![
                Just(OpCode::Exists),
                Just(OpCode::SetData),
                Just(OpCode::SetAcl),
                Just(OpCode::Check)
            ],
            stat()
        )
            .prop_map(|(opcode, stat)| (opcode, ReplyBody::Stat(stat))),
        (
            prop_oneof![Just(OpCode::GetData), Just(OpCode::Reconfig)],
            data(),
            stat()
        )
            .prop_map(|(opcode, data, stat)| (opcode, ReplyBody::Data { data, stat })),
        (acl(), stat()).prop_map(|(acl, stat)| (OpCode::GetAcl, ReplyBody::Acl { acl, stat })),
        (vec(text(), 0..4), stat()).prop_map(|(children, stat)| {
            (
                OpCode::GetChildren2,
                ReplyBody::Children2 { children, stat },
            )
        }),
    ]
    .boxed()
}

fn reply_without_stat() -> BoxedStrategy<(OpCode, ReplyBody)> {
    let event =
        (code(), code(), text()).prop_map(|(kind, state, path)| WatcherEvent { kind, state, path });
    let identity =
        (text(), text()).prop_map(|(auth_scheme, user)| ClientInfo { auth_scheme, user });
    let multi = prop_oneof![Just(OpCode::Multi), Just(OpCode::MultiRead)];
    prop_oneof![
        text().prop_map(|path| (OpCode::Create, ReplyBody::Create { path })),
        text().prop_map(|path| (OpCode::Sync, ReplyBody::Sync { path })),
        vec(text(), 0..4)
            .prop_map(|children| (OpCode::GetChildren, ReplyBody::Children { children })),
        (multi, vec(result(), 0..5))
            .prop_map(|(opcode, results)| (opcode, ReplyBody::Multi(results))),
        data().prop_map(|token| (OpCode::Sasl, ReplyBody::Sasl(SaslResponse { token }))),
        vec(text(), 0..4)
            .prop_map(|paths| (OpCode::GetEphemerals, ReplyBody::Ephemerals { paths })),
        any::<i32>().prop_map(|count| {
            (
                OpCode::GetAllChildrenNumber,
                ReplyBody::AllChildrenNumber { count },
            )
        }),
        code().prop_map(|error| (OpCode::AddWatch, ReplyBody::AddWatch(error))),
        vec(identity, 0..3)
            .prop_map(|identities| (OpCode::WhoAmI, ReplyBody::WhoAmI { identities })),
        event.prop_map(|event| (OpCode::Notification, ReplyBody::Notification(event))),
        vec(any::<u8>(), 0..24).prop_map(|bytes| (OpCode::Unknown(999), ReplyBody::Other(bytes))),
        prop::sample::select(EMPTY_REPLIES).prop_map(|opcode| (opcode, ReplyBody::Empty)),
    ]
    .boxed()
}

const EMPTY_REPLIES: &[OpCode] = &[
    OpCode::Delete,
    OpCode::Ping,
    OpCode::CheckWatches,
    OpCode::RemoveWatches,
    OpCode::Auth,
    OpCode::SetWatches,
    OpCode::SetWatches2,
    OpCode::CloseSession,
];

/// Any reply, with the operation that it answers.
pub(crate) fn reply() -> impl Strategy<Value = (OpCode, Reply)> {
    let body = prop_oneof![reply_with_stat(), reply_without_stat()];
    let error = prop_oneof![3 => Just(ErrorCode::Ok), 1 => code()];
    (any::<i32>(), any::<i64>(), error, body).prop_map(|(xid, zxid, error, (opcode, body))| {
        let reply = match error {
            ErrorCode::Ok => Reply::new(xid, zxid, body),
            error => Reply::failed(xid, zxid, error),
        };
        (opcode, reply)
    })
}

/// Any first frame of a client.
pub(crate) fn connect_request() -> impl Strategy<Value = ConnectRequest> {
    (
        any::<i32>(),
        any::<i64>(),
        any::<i32>(),
        any::<i64>(),
        vec(any::<u8>(), 0..20),
        option::of(any::<bool>()),
    )
        .prop_map(
            |(protocol_version, last_zxid_seen, timeout, session_id, password, read_only)| {
                ConnectRequest {
                    protocol_version,
                    last_zxid_seen,
                    timeout,
                    session_id,
                    password,
                    read_only,
                }
            },
        )
}

/// Any first frame of a server.
pub(crate) fn connect_response() -> impl Strategy<Value = ConnectResponse> {
    connect_request().prop_map(|request| ConnectResponse {
        protocol_version: request.protocol_version,
        timeout: request.timeout,
        session_id: request.session_id,
        password: request.password,
        read_only: request.read_only,
    })
}
