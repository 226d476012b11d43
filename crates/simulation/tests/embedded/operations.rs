//! Operations that the library itself does not use, with the answers of Apache's server: those that
//! the random requests of `differential` do not reach.

use zookeeper_recipes_protocol::{
    AuthRequest, CreateMode, DeleteRequest, ErrorCode, EventType, ReplyBody, RequestBody,
    SetDataRequest, SetWatchesRequest,
};
use zookeeper_recipes_simulation::EmbeddedServer;

use crate::raw::{Raw, create};

fn events(client: &mut Raw) -> Vec<(EventType, String)> {
    let events = client.events().into_iter();
    events.map(|event| (event.kind, event.path)).collect()
}

#[test]
fn identities_are_listed_and_a_scheme_that_is_unknown_ends_the_connection() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    let auth = |scheme: &str, auth: Option<&[u8]>| {
        RequestBody::Auth(AuthRequest {
            kind: 0,
            scheme: scheme.to_owned(),
            auth: auth.map(<[u8]>::to_vec),
        })
    };
    client.done(auth("digest", Some(b"user:secret")));
    let ReplyBody::WhoAmI { identities } = client.done(RequestBody::WhoAmI) else {
        panic!("an answer of another kind");
    };
    let users: Vec<(&str, &str)> = identities
        .iter()
        .map(|it| (it.auth_scheme.as_str(), it.user.as_str()))
        .collect();
    assert_eq!(users, [("ip", "127.0.0.1"), ("digest", "user")]);
    assert_eq!(client.fails(auth("ldap", None)), ErrorCode::AuthFailed);
    assert!(client.is_closed());
}

#[test]
fn watches_that_are_set_again_report_what_was_missed() {
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
    client.done(RequestBody::SetData(SetDataRequest {
        path: "/old".to_owned(),
        data: None,
        version: -1,
    }));
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
        let (path, version) = (special.to_owned(), -1);
        let delete = RequestBody::Delete(DeleteRequest { path, version });
        assert_eq!(client.fails(delete), ErrorCode::BadArguments);
    }
}
