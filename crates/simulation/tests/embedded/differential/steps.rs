//! Random steps: what the sessions of a case do.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use zookeeper_recipes_protocol::{
    Acl, AddWatchMode, AddWatchRequest, AuthRequest, CheckRequest, CreateMode, CreateRequest,
    CreateTtlRequest, DeleteRequest, GetEphemeralsRequest, Operation, PathRequest, Permission,
    ReadRequest, ReconfigRequest, RequestBody, SetAclRequest, SetDataRequest, SetWatches2Request,
    SetWatchesRequest, WatcherType, WatchesRequest,
};

use crate::raw::{anyone, entry};

/// How many sessions a case has.
pub(super) const SESSIONS: usize = 3;

/// What one session does.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// It sends these requests without waiting in between. Their paths are below the root of the
    /// case.
    Ask(usize, Vec<RequestBody>),
    /// It comes back on another connection.
    Reconnect(usize),
    /// It ends, and another takes its place.
    Close(usize),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = request().prop_map(|request| vec![request]);
    // A server may take an `Auth` out of its turn.
    let burst = vec(prop_oneof![2 => write(), 1 => read(), 1 => several()], 2..5);
    let asks = prop_oneof![6 => one, 1 => burst];
    let ask = (0..SESSIONS, asks).prop_map(|(session, requests)| Step::Ask(session, requests));
    let step = prop_oneof![
        40 => ask,
        1 => (0..SESSIONS).prop_map(Step::Reconnect),
        1 => (0..SESSIONS).prop_map(Step::Close),
    ];
    vec(step, 1..60)
}

pub(crate) fn request() -> impl Strategy<Value = RequestBody> {
    prop_oneof![
        12 => write(),
        8 => read(),
        4 => watches(),
        3 => several(),
        1 => rarer(),
    ]
}

fn several() -> impl Strategy<Value = RequestBody> {
    prop_oneof![
        2 => vec(one_of_several(), 0..5).prop_map(RequestBody::Multi),
        1 => vec(one_read(), 0..4).prop_map(RequestBody::MultiRead),
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        20 => select(vec!["/a", "/a/b", "/a/b/c", "/b", "/b/a", ""]),
        1 => select(vec!["/", "/a/", "//a", "/a/../b", "/./a", "/a/.b", "/\u{1}", "/\u{e000}",
            "/a\0b", "/ü", "/\u{1f600}"]),
    ]
    .prop_map(str::to_owned)
}

fn version() -> impl Strategy<Value = i32> {
    prop_oneof![3 => Just(-1), 3 => Just(0), 1 => 1..3, 1 => Just(-2)]
}

fn data() -> impl Strategy<Value = Option<Vec<u8>>> {
    option::weighted(0.9, vec(any::<u8>(), 0..3))
}

fn mode() -> impl Strategy<Value = CreateMode> {
    prop_oneof![
        6 => Just(CreateMode::Persistent),
        4 => Just(CreateMode::Ephemeral),
        2 => Just(CreateMode::PersistentSequential),
        2 => Just(CreateMode::EphemeralSequential),
        1 => Just(CreateMode::Container),
        1 => Just(CreateMode::PersistentWithTtl),
        1 => Just(CreateMode::Unknown(17)),
    ]
}

fn acl() -> impl Strategy<Value = Vec<Acl>> {
    let read = Permission::READ;
    let all = Permission::ALL;
    let user = "one:+7K83PhyQ3ijGj0ADmljf0quVwQ=";
    let entries = vec![
        entry(all, "world", "anyone"),
        entry(read, "world", "anyone"),
        entry(Permission::CREATE | Permission::DELETE, "world", "anyone"),
        entry(Permission::ADMIN, "world", "anyone"),
        entry(all, "auth", ""),
        entry(Permission::WRITE, "auth", "anything"),
        entry(all, "digest", user),
        entry(read, "digest", "\u{1f600}:x"),
        entry(all, "digest", "no colon"),
        entry(all, "digest", "one:two:"),
        entry(read, "ip", "127.0.0.0/8"),
        entry(all, "ip", "10.0.0.1"),
        entry(all, "ip", "nowhere"),
        entry(all, "world", "nobody"),
        entry(all, "ldap", "somebody"),
    ];
    prop_oneof![
        8 => Just(anyone(all)),
        4 => vec(select(entries), 0..3),
    ]
}

fn create_request() -> impl Strategy<Value = CreateRequest> {
    (path(), data(), acl(), mode()).prop_map(|(path, data, acl, mode)| CreateRequest {
        path,
        data,
        acl,
        mode,
    })
}

fn create_ttl() -> impl Strategy<Value = CreateTtlRequest> {
    (path(), data()).prop_map(|(path, data)| CreateTtlRequest {
        path,
        data,
        acl: anyone(Permission::ALL),
        mode: CreateMode::PersistentWithTtl,
        ttl: 10_000,
    })
}

fn container(request: CreateRequest) -> CreateRequest {
    CreateRequest {
        mode: CreateMode::Container,
        ..request
    }
}

fn delete() -> impl Strategy<Value = DeleteRequest> {
    (path(), version()).prop_map(|(path, version)| DeleteRequest { path, version })
}

fn set_data() -> impl Strategy<Value = SetDataRequest> {
    (path(), data(), version()).prop_map(|(path, data, version)| SetDataRequest {
        path,
        data,
        version,
    })
}

fn write() -> impl Strategy<Value = RequestBody> {
    let set_acl = (path(), acl(), version()).prop_map(|(path, acl, version)| SetAclRequest {
        path,
        acl,
        version,
    });
    prop_oneof![
        6 => create_request().prop_map(RequestBody::Create),
        6 => create_request().prop_map(RequestBody::Create2),
        1 => create_request().prop_map(container).prop_map(RequestBody::CreateContainer),
        1 => create_ttl().prop_map(RequestBody::CreateTtl),
        6 => delete().prop_map(RequestBody::Delete),
        4 => set_data().prop_map(RequestBody::SetData),
        2 => set_acl.prop_map(RequestBody::SetAcl),
    ]
}

fn read_request() -> impl Strategy<Value = ReadRequest> {
    (path(), any::<bool>()).prop_map(|(path, watch)| ReadRequest { path, watch })
}

fn read() -> impl Strategy<Value = RequestBody> {
    let one = || path().prop_map(|path| PathRequest { path });
    prop_oneof![
        3 => read_request().prop_map(RequestBody::Exists),
        3 => read_request().prop_map(RequestBody::GetData),
        3 => read_request().prop_map(RequestBody::GetChildren),
        3 => read_request().prop_map(RequestBody::GetChildren2),
        1 => one().prop_map(RequestBody::GetAcl),
        1 => one().prop_map(RequestBody::GetAllChildrenNumber),
        1 => one().prop_map(RequestBody::Sync),
    ]
}

fn watches() -> impl Strategy<Value = RequestBody> {
    let mode = select(vec![
        AddWatchMode::Persistent,
        AddWatchMode::PersistentRecursive,
        AddWatchMode::Unknown(9),
    ]);
    let kind = || {
        select(vec![
            WatcherType::Children,
            WatcherType::Data,
            WatcherType::Any,
            WatcherType::Persistent,
            WatcherType::PersistentRecursive,
            WatcherType::Unknown(9),
        ])
    };
    let add = (path(), mode).prop_map(|(path, mode)| AddWatchRequest { path, mode });
    let some = || (path(), kind()).prop_map(|(path, kind)| WatchesRequest { path, kind });
    let paths = || vec(path(), 0..3);
    let set = (0..2_i64, paths(), paths(), paths()).prop_map(set_watches);
    let set_2 = (0..2_i64, paths(), paths(), paths(), paths(), paths()).prop_map(set_watches_2);
    prop_oneof![
        3 => add.prop_map(RequestBody::AddWatch),
        2 => some().prop_map(RequestBody::RemoveWatches),
        1 => some().prop_map(RequestBody::CheckWatches),
        1 => set.prop_map(RequestBody::SetWatches),
        1 => set_2.prop_map(RequestBody::SetWatches2),
    ]
}

type Paths = Vec<String>;

/// The last transaction that the client has seen: all of them, or none.
fn seen(all: i64) -> i64 {
    if all == 1 { i64::MAX } else { 0 }
}

fn set_watches((all, data, exist, child): (i64, Paths, Paths, Paths)) -> SetWatchesRequest {
    SetWatchesRequest {
        relative_zxid: seen(all),
        data_watches: data,
        exist_watches: exist,
        child_watches: child,
    }
}

fn set_watches_2(
    (all, data, exist, child, persistent, recursive): (i64, Paths, Paths, Paths, Paths, Paths),
) -> SetWatches2Request {
    SetWatches2Request {
        relative_zxid: seen(all),
        data_watches: data,
        exist_watches: exist,
        child_watches: child,
        persistent_watches: persistent,
        persistent_recursive_watches: recursive,
    }
}

fn one_of_several() -> impl Strategy<Value = Operation> {
    let check = (path(), version()).prop_map(|(path, version)| CheckRequest { path, version });
    prop_oneof![
        4 => create_request().prop_map(Operation::Create),
        4 => create_request().prop_map(Operation::Create2),
        1 => create_request().prop_map(container).prop_map(Operation::CreateContainer),
        3 => delete().prop_map(Operation::Delete),
        3 => set_data().prop_map(Operation::SetData),
        3 => check.prop_map(Operation::Check),
    ]
}

fn one_read() -> impl Strategy<Value = Operation> {
    let unwatched = || path().prop_map(|path| ReadRequest { path, watch: false });
    prop_oneof![
        unwatched().prop_map(Operation::GetData),
        unwatched().prop_map(Operation::GetChildren),
    ]
}

fn rarer() -> impl Strategy<Value = RequestBody> {
    let auth = select(vec!["one:one", "two:two", "no colon"]).prop_map(|text| AuthRequest {
        kind: 0,
        scheme: "digest".to_owned(),
        auth: Some(text.as_bytes().to_vec()),
    });
    let prefix = path().prop_map(|path| GetEphemeralsRequest { prefix: Some(path) });
    let reconfiguration = ReconfigRequest {
        joining_servers: None,
        leaving_servers: None,
        new_members: Some("server.1=localhost:1:2;3".to_owned()),
        current_config_id: -1,
    };
    prop_oneof![
        3 => auth.prop_map(RequestBody::Auth),
        1 => prefix.prop_map(RequestBody::GetEphemerals),
        1 => Just(RequestBody::WhoAmI),
        1 => Just(RequestBody::Reconfig(reconfiguration)),
    ]
}
