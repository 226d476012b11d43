//! Operations that the library itself does not use, with the answers of Apache's server.

use zookeeper_recipes_protocol::{
    AddWatchMode, AddWatchRequest, AuthRequest, CheckRequest, CreateMode, CreateRequest,
    CreateTtlRequest, DeleteRequest, ErrorCode, EventType, GetEphemeralsRequest, MultiOperation,
    MultiResult, PathRequest, ReconfigRequest, ReplyBody, RequestBody, SetAclRequest,
    SetDataRequest, SetWatchesRequest, WatcherType, WatchesRequest, permission,
};
use zookeeper_recipes_simulation::EmbeddedServer;

use crate::raw::{Raw, anyone, at, create, entry};

fn path(path: &str) -> PathRequest {
    PathRequest {
        path: path.to_owned(),
    }
}

fn set(path: &str, version: i32) -> RequestBody {
    RequestBody::SetData(SetDataRequest {
        path: path.to_owned(),
        data: Some(b"new".to_vec()),
        version,
    })
}

fn delete(path: &str) -> RequestBody {
    RequestBody::Delete(DeleteRequest {
        path: path.to_owned(),
        version: -1,
    })
}

fn watch(path: &str, mode: AddWatchMode) -> RequestBody {
    RequestBody::AddWatch(AddWatchRequest {
        path: path.to_owned(),
        mode,
    })
}

fn digest(text: &str) -> RequestBody {
    RequestBody::Auth(AuthRequest {
        kind: 0,
        scheme: "digest".to_owned(),
        auth: Some(text.as_bytes().to_vec()),
    })
}

fn events(client: &mut Raw) -> Vec<(EventType, String)> {
    let events = client.events().into_iter();
    events.map(|event| (event.kind, event.path)).collect()
}

#[test]
fn versions_are_checked() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    client.done(create("/a", CreateMode::Persistent));
    assert_eq!(client.fails(set("/a", 7)), ErrorCode::BadVersion);
    let ReplyBody::Stat(stat) = client.done(set("/a", 0)) else {
        panic!("a set is answered with the metadata");
    };
    assert_eq!((stat.version, stat.data_length), (1, 3));
    let old = DeleteRequest {
        path: "/a".to_owned(),
        version: 0,
    };
    let old = client.fails(RequestBody::Delete(old));
    assert_eq!(old, ErrorCode::BadVersion);
    client.done(delete("/a"));
}

#[test]
fn access_control_lists_are_kept_and_guard() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut owner = Raw::connect(&server.connect_string());
    let mut other = Raw::connect(&server.connect_string());
    owner.done(digest("user:secret"));
    let acl = vec![
        entry(permission::ALL, "auth", ""),
        entry(permission::READ, "ip", "127.0.0.0/8"),
    ];
    owner.done(RequestBody::Create(CreateRequest {
        path: "/guarded".to_owned(),
        data: None,
        acl,
        mode: CreateMode::Persistent,
    }));
    let list = |client: &mut Raw| match client.done(RequestBody::GetAcl(path("/guarded"))) {
        ReplyBody::Acl { acl, .. } => acl[0].id.id.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(list(&mut owner), "user:5w9W4eL3797Y4Wq8AcKUPPk8ha4=");
    assert_eq!(list(&mut other), "user:x", "a digest is not for everybody");
    other.done(RequestBody::GetData(at("/guarded", false)));
    assert_eq!(other.fails(set("/guarded", -1)), ErrorCode::NoAuth);
    let open = |version| {
        RequestBody::SetAcl(SetAclRequest {
            path: "/guarded".to_owned(),
            acl: anyone(permission::ALL),
            version,
        })
    };
    assert_eq!(other.fails(open(-1)), ErrorCode::NoAuth);
    assert_eq!(owner.fails(open(1)), ErrorCode::BadVersion);
    owner.done(open(0));
    other.done(set("/guarded", -1));
}

#[test]
fn identities_are_told_and_a_scheme_that_is_unknown_ends_the_connection() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    client.done(digest("user:secret"));
    let ReplyBody::WhoAmI { identities } = client.done(RequestBody::WhoAmI) else {
        panic!("an answer of another kind");
    };
    let users: Vec<(&str, &str)> = identities
        .iter()
        .map(|it| (it.auth_scheme.as_str(), it.user.as_str()))
        .collect();
    assert_eq!(users, [("ip", "127.0.0.1"), ("digest", "user")]);
    let unknown = RequestBody::Auth(AuthRequest {
        kind: 0,
        scheme: "ldap".to_owned(),
        auth: None,
    });
    assert_eq!(client.fails(unknown), ErrorCode::AuthFailed);
    assert!(client.is_closed());
}

#[test]
fn persistent_watches_stay_and_recursive_ones_see_what_is_below() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    client.done(create("/a", CreateMode::Persistent));
    client.done(watch("/a", AddWatchMode::Persistent));
    client.done(set("/a", -1));
    client.done(create("/a/b", CreateMode::Persistent));
    client.done(set("/a", -1));
    use EventType::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    assert_eq!(
        events(&mut client),
        [
            (NodeDataChanged, "/a".to_owned()),
            (NodeChildrenChanged, "/a".to_owned()),
            (NodeDataChanged, "/a".to_owned()),
        ]
    );
    client.done(watch("/a", AddWatchMode::PersistentRecursive));
    client.done(create("/a/b/c", CreateMode::Persistent));
    client.done(delete("/a/b/c"));
    assert_eq!(
        events(&mut client),
        [
            (NodeCreated, "/a/b/c".to_owned()),
            (NodeDeleted, "/a/b/c".to_owned()),
        ]
    );
    let all = WatchesRequest {
        path: "/a".to_owned(),
        kind: WatcherType::Any,
    };
    client.done(RequestBody::CheckWatches(all.clone()));
    client.done(RequestBody::RemoveWatches(all.clone()));
    let again = client.fails(RequestBody::RemoveWatches(all));
    assert_eq!(again, ErrorCode::NoWatcher);
    client.done(set("/a", -1));
    assert_eq!(events(&mut client), []);
}

#[test]
fn watches_that_are_set_again_tell_what_was_missed() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    client.done(create("/old", CreateMode::Persistent));
    let seen = client.ask(RequestBody::Ping).header.zxid;
    client.done(create("/new", CreateMode::Persistent));
    let paths = |paths: &[&str]| paths.iter().map(|it| (*it).to_owned()).collect();
    client.done(RequestBody::SetWatches(SetWatchesRequest {
        relative_zxid: seen,
        data_watches: paths(&["/old", "/gone"]),
        exist_watches: paths(&["/new", "/later"]),
        child_watches: paths(&["/"]),
    }));
    use EventType::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    assert_eq!(
        events(&mut client),
        [
            (NodeDeleted, "/gone".to_owned()),
            (NodeCreated, "/new".to_owned()),
            (NodeChildrenChanged, "/".to_owned()),
        ]
    );
    client.done(set("/old", -1));
    client.done(create("/later", CreateMode::Persistent));
    assert_eq!(
        events(&mut client),
        [
            (NodeDataChanged, "/old".to_owned()),
            (NodeCreated, "/later".to_owned()),
        ]
    );
}

#[test]
fn transaction_that_fails_tells_which_operation() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    let operation = |path: &str| {
        MultiOperation::Create(CreateRequest {
            path: path.to_owned(),
            data: None,
            acl: anyone(permission::ALL),
            mode: CreateMode::Persistent,
        })
    };
    let check = MultiOperation::Check(CheckRequest {
        path: "/absent".to_owned(),
        version: -1,
    });
    let operations = vec![operation("/a"), check, operation("/b")];
    let ReplyBody::Multi(results) = client.done(RequestBody::Multi(operations)) else {
        panic!("an answer of another kind");
    };
    let codes = [
        ErrorCode::Ok,
        ErrorCode::NoNode,
        ErrorCode::RuntimeInconsistency,
    ];
    assert_eq!(results, codes.map(MultiResult::Error));
    assert_eq!(server.administrator().children("/"), ["zookeeper"]);
}

#[test]
fn each_read_of_several_has_its_answer() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    let reads = vec![
        MultiOperation::GetChildren(at("/", false)),
        MultiOperation::GetData(at("/absent", false)),
        MultiOperation::GetData(at("/", false)),
    ];
    let ReplyBody::Multi(results) = client.done(RequestBody::MultiRead(reads)) else {
        panic!("an answer of another kind");
    };
    let children = vec!["zookeeper".to_owned()];
    assert_eq!(results[0], MultiResult::GetChildren { children });
    assert_eq!(results[1], MultiResult::Error(ErrorCode::NoNode));
    assert!(matches!(&results[2], MultiResult::GetData { .. }));
}

#[test]
fn znodes_are_counted_and_own_ephemerals_listed() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    for path in ["/a", "/a/b", "/ab"] {
        client.done(create(path, CreateMode::Persistent));
    }
    client.done(create("/a/mine", CreateMode::Ephemeral));
    client.done(create("/mine", CreateMode::Ephemeral));
    let count = client.done(RequestBody::GetAllChildrenNumber(path("/a")));
    assert_eq!(count, ReplyBody::AllChildrenNumber { count: 2 });
    let mine = client.done(RequestBody::GetEphemerals(GetEphemeralsRequest {
        prefix: Some("/a".to_owned()),
    }));
    let paths = vec!["/a/mine".to_owned()];
    assert_eq!(mine, ReplyBody::Ephemerals { paths });
}

#[test]
fn what_is_not_enabled_is_refused() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    let with_ttl = RequestBody::CreateTtl(CreateTtlRequest {
        path: "/ttl".to_owned(),
        data: None,
        acl: anyone(permission::ALL),
        mode: CreateMode::PersistentWithTtl,
        ttl: 1_000,
    });
    assert_eq!(client.fails(with_ttl), ErrorCode::Unimplemented);
    let reconfiguration = RequestBody::Reconfig(ReconfigRequest {
        joining_servers: None,
        leaving_servers: Some("1".to_owned()),
        new_members: None,
        current_config_id: -1,
    });
    assert_eq!(client.fails(reconfiguration), ErrorCode::ReconfigDisabled);
}

#[test]
fn paths_that_are_none_are_refused() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    for bad in ["", "relative", "/a/", "/a//b", "/a/../b", "/./a", "/a\0b"] {
        let code = client.fails(create(bad, CreateMode::Persistent));
        let wanted = match bad {
            "/a/" | "/a//b" | "/a/../b" | "/./a" => [ErrorCode::NoNode, ErrorCode::BadArguments],
            _ => [ErrorCode::BadArguments; 2],
        };
        assert!(wanted.contains(&code), "{bad:?}: {code}");
    }
    for special in ["/", "/zookeeper", "/zookeeper/config"] {
        assert_eq!(client.fails(delete(special)), ErrorCode::BadArguments);
    }
}
