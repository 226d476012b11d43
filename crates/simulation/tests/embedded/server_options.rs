//! Options of a server: the embedded server and Apache's do the same with the same options.

use std::time::{Duration, Instant};

use zookeeper_recipes_protocol::{
    AuthId, AuthRequest, CreateMode, CreateRequest, CreateTtlRequest, DeleteRequest, ErrorCode,
    Operation, Outcome, PathRequest, Permission, ReplyBody, Request, RequestBody, SaslRequest,
    SetDataRequest,
};
use zookeeper_recipes_simulation::{EmbeddedServer, SimulationOptions};
use zookeeper_recipes_testkit::{Server, ServerOptions};

use crate::raw::{Raw, anyone, at, create, entry};
use crate::served;

/// Longer than a server takes to check its containers.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often the servers check their containers.
const INTERVAL: Duration = Duration::from_millis(100);

/// Apache's server and the embedded one.
struct Both {
    apache: Server,
    embedded: EmbeddedServer,
}

impl Both {
    /// Starts both; `embedded` sets the options of the embedded one.
    async fn start(apache: ServerOptions, embedded: impl FnOnce(&mut SimulationOptions)) -> Both {
        Both {
            apache: Server::start(apache).await.expect("it starts"),
            embedded: crate::embedded(|it| embedded(&mut it.simulation)),
        }
    }

    /// A client of each, with the name of the server.
    fn clients(&self) -> [(&'static str, Raw); 2] {
        [
            ("Apache's", Raw::connect(&self.apache.connect_string())),
            ("embedded", Raw::connect(&self.embedded.connect_string())),
        ]
    }
}

/// What the operations of a transaction come to.
fn multi(client: &mut Raw, operations: Vec<Operation>) -> Vec<Outcome> {
    match client.done(RequestBody::Multi(operations)) {
        ReplyBody::Multi(results) => results,
        other => panic!("{other:?}"),
    }
}

fn ttl(path: &str, mode: CreateMode, ttl: i64) -> CreateTtlRequest {
    CreateTtlRequest {
        path: path.to_owned(),
        data: Some(b"data".to_vec()),
        acl: anyone(Permission::ALL),
        mode,
        ttl,
    }
}

fn created(path: &str, data: &[u8]) -> RequestBody {
    RequestBody::Create2(create_of(path, data))
}

fn create_of(path: &str, data: &[u8]) -> CreateRequest {
    CreateRequest {
        path: path.to_owned(),
        data: Some(data.to_vec()),
        acl: anyone(Permission::ALL),
        mode: CreateMode::Persistent,
    }
}

fn delete(path: &str) -> RequestBody {
    RequestBody::Delete(DeleteRequest {
        path: path.to_owned(),
        version: -1,
    })
}

fn set(path: &str, data: &[u8]) -> RequestBody {
    RequestBody::SetData(SetDataRequest {
        path: path.to_owned(),
        data: Some(data.to_vec()),
        version: -1,
    })
}

fn data(client: &mut Raw, path: &str) -> String {
    match client.done(RequestBody::GetData(at(path, false))) {
        ReplyBody::Data { data, .. } => String::from_utf8(data.unwrap_or_default()).expect("text"),
        other => panic!("{other:?}"),
    }
}

fn exists(client: &mut Raw, path: &str) -> bool {
    match client.fails(RequestBody::Exists(at(path, false))) {
        ErrorCode::Ok => true,
        ErrorCode::NoNode => false,
        other => panic!("{path}: {other}"),
    }
}

fn until_deleted(client: &mut Raw, path: &str, name: &str) {
    let began = Instant::now();
    while exists(client, path) {
        assert!(began.elapsed() < PATIENCE, "{name}: {path} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn znode_is_deleted_when_its_time_to_live_has_passed_if_extended_types_are_on() {
    let apache = ServerOptions::new().extended_types();
    let apache = apache.container_check_interval(INTERVAL);
    let both = Both::start(apache, |embedded| {
        embedded.extended_types = true;
        embedded.container_interval = INTERVAL;
    })
    .await;
    for (name, mut client) in both.clients() {
        use CreateMode::{PersistentSequentialWithTtl, PersistentWithTtl};
        for milliseconds in [0, -1, 1 << 40] {
            let refused = ttl("/refused", PersistentWithTtl, milliseconds);
            let code = client.fails(RequestBody::CreateTtl(refused));
            assert_eq!(code, ErrorCode::BadArguments, "{name}: {milliseconds}");
        }
        let code = client.fails(create("/refused", PersistentWithTtl));
        assert_eq!(code, ErrorCode::BadArguments, "{name}");

        let longest = ttl("/longest-", PersistentSequentialWithTtl, (1 << 40) - 1);
        let reply = client.done(RequestBody::CreateTtl(longest));
        let ReplyBody::Create2 { path, stat } = reply else {
            panic!("{name}: {reply:?}");
        };
        assert_eq!(path, "/longest-0000000000", "{name}");
        assert_eq!(stat.ephemeral_owner, 0, "{name}");

        let short = |path| Operation::CreateTtl(ttl(path, PersistentWithTtl, 1));
        for result in multi(&mut client, vec![short("/short"), short("/parent")]) {
            let Outcome::Create2 { stat, .. } = result else {
                panic!("{name}: {result:?}");
            };
            assert_eq!(stat.ephemeral_owner, 0, "{name}");
        }
        // A znode with a child stays, and so does one whose time has not passed.
        if client.fails(created("/parent/child", b"")) == ErrorCode::Ok {
            until_deleted(&mut client, "/short", name);
            assert!(exists(&mut client, "/parent"), "{name}");
            client.done(delete("/parent/child"));
        }
        until_deleted(&mut client, "/short", name);
        until_deleted(&mut client, "/parent", name);
        assert!(exists(&mut client, "/longest-0000000000"), "{name}");

        client.done(RequestBody::CreateContainer(create_of("/container", b"")));
        client.done(created("/container/child", b""));
        client.done(delete("/container/child"));
        until_deleted(&mut client, "/container", name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_there_is_no_time_to_live_and_no_super_user() {
    let both = Both::start(ServerOptions::new(), |_| ()).await;
    for (name, mut client) in both.clients() {
        for milliseconds in [10_000, 0] {
            let refused = ttl("/refused", CreateMode::PersistentWithTtl, milliseconds);
            let one = Operation::CreateTtl(refused.clone());
            let code = client.fails(RequestBody::CreateTtl(refused));
            assert_eq!(code, ErrorCode::Unimplemented, "{name}");
            let unimplemented = Outcome::Error(ErrorCode::Unimplemented);
            assert_eq!(multi(&mut client, vec![one]), [unimplemented], "{name}");
        }
        let code = client.fails(create("/refused", CreateMode::PersistentWithTtl));
        assert_eq!(code, ErrorCode::Unimplemented, "{name}");

        for path in ["/", "/zookeeper", "/zookeeper/config"] {
            let code = client.fails(delete(path));
            assert_eq!(code, ErrorCode::BadArguments, "{name}: {path}");
        }
        forbid(&mut client, "/closed");
        client.done(authenticate("digest", b"super:password"));
        let read = RequestBody::GetData(at("/closed", false));
        assert_eq!(client.fails(read), ErrorCode::NoAuth, "{name}");
    }
}

/// Creates a znode that only somebody else may read.
fn forbid(client: &mut Raw, path: &str) {
    let somebody = AuthId::digest("somebody", "else");
    client.done(RequestBody::Create(CreateRequest {
        acl: vec![entry(Permission::ALL, &somebody.scheme, &somebody.id)],
        ..create_of(path, b"secret")
    }));
}

fn authenticate(scheme: &str, auth: &[u8]) -> RequestBody {
    RequestBody::Auth(AuthRequest {
        kind: 0,
        scheme: scheme.to_owned(),
        auth: Some(auth.to_vec()),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn no_access_control_list_limits_the_super_user() {
    let digest = AuthId::digest("super", "password").id;
    let property = "zookeeper.DigestAuthenticationProvider.superDigest";
    let apache = ServerOptions::new().system_property(property, &*digest);
    let both = Both::start(apache, |embedded| {
        embedded.super_digest = Some(digest.to_string());
    })
    .await;
    for (name, mut client) in both.clients() {
        forbid(&mut client, "/closed");
        let read = || RequestBody::GetData(at("/closed", false));
        assert_eq!(client.fails(read()), ErrorCode::NoAuth, "{name}");
        client.done(authenticate("digest", b"super:password"));
        assert_eq!(data(&mut client, "/closed"), "secret", "{name}");
        client.done(set("/closed", b"changed"));
        client.done(created("/closed/child", b""));
        client.done(delete("/closed/child"));

        // The list of its own znode names the digest alone.
        client.done(RequestBody::Create(CreateRequest {
            acl: vec![entry(Permission::ALL, "auth", "")],
            ..create_of("/own", b"")
        }));
        let path = "/own".to_owned();
        let ReplyBody::Acl { acl, .. } = client.done(RequestBody::GetAcl(PathRequest { path }))
        else {
            panic!("{name}: an answer of another kind");
        };
        let own = entry(Permission::ALL, "digest", &digest);
        assert_eq!(acl, [own], "{name}");
    }
    // Nobody can claim to be that user otherwise.
    for (name, mut other) in both.clients() {
        let code = other.fails(authenticate("super", b""));
        assert_eq!(code, ErrorCode::AuthFailed, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_longer_than_the_largest_ends_the_connection() {
    const LARGEST: usize = 2_000;
    let apache = ServerOptions::new().system_property("jute.maxbuffer", LARGEST.to_string());
    let both = Both::start(apache, |embedded| {
        embedded.largest_request = LARGEST;
    })
    .await;
    let of_length = |length: usize| {
        let mut frame = Vec::new();
        let (xid, body) = (1, created("/a", b""));
        Request { xid, body }.encode_frame(&mut frame);
        created("/a", &vec![0; length - (frame.len() - 4)])
    };
    for (name, mut client) in both.clients() {
        let code = client.fails(of_length(LARGEST));
        assert_eq!(code, ErrorCode::Ok, "{name}");
        client.send(of_length(LARGEST + 1));
        assert!(client.is_closed(), "{name}");
    }
}

/// Apache's server without a SASL configuration does not answer.
#[test]
fn sasl_is_refused_with_a_code_before_the_connection_is_closed() {
    let (_server, mut client) = served();
    let token = Some(Vec::new());
    let code = client.fails(RequestBody::Sasl(SaslRequest { token }));
    assert_eq!(code, ErrorCode::AuthFailed);
    assert!(client.is_closed());
}
