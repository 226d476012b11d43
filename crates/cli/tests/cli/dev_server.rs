//! `zkr dev-server`: what it refuses, and what each of its options does.

use std::time::{Duration, Instant};

use tokio::process::Child;
use zookeeper_recipes_protocol::{
    AuthId, AuthRequest, CreateMode, CreateRequest, CreateTtlRequest, ErrorCode, Permission,
    RequestBody,
};
use zookeeper_recipes_suite::PATIENCE;
use zookeeper_recipes_suite::raw::{Raw, anyone, at, entry};

use crate::support::{Arguments, Printed, Stage, run, start};

/// A server that `zkr` serves, on a free port.
struct Served {
    connect: String,
    _server: Child,
}

impl Served {
    async fn start(options: impl Arguments) -> Served {
        let arguments = [&["dev-server", "--port", "0"], &options.list()[..]].concat();
        let mut server = start("127.0.0.1:1", arguments);
        let line = Printed::by(&mut server).next().await;
        let connect = line.strip_prefix("ZooKeeper serves at ").expect("where");
        Served {
            connect: connect.to_owned(),
            _server: server,
        }
    }

    fn client(&self) -> Raw {
        Raw::connect(&self.connect)
    }
}

fn exists(client: &mut Raw, path: &str) -> bool {
    client.fails(RequestBody::Exists(at(path, false))) == ErrorCode::Ok
}

fn until_deleted(client: &mut Raw, path: &str) {
    let began = Instant::now();
    while exists(client, path) {
        assert!(began.elapsed() < PATIENCE, "{path} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Creates a znode that lives for this many milliseconds while it has no child.
fn create_for(path: &str, ttl: i64) -> RequestBody {
    RequestBody::CreateTtl(CreateTtlRequest {
        path: path.to_owned(),
        data: Some(Vec::new()),
        acl: anyone(Permission::ALL),
        mode: CreateMode::PersistentWithTtl,
        ttl,
    })
}

fn create_with(path: &str, data: &[u8]) -> RequestBody {
    RequestBody::Create2(CreateRequest {
        path: path.to_owned(),
        data: Some(data.to_vec()),
        acl: anyone(Permission::ALL),
        mode: CreateMode::Persistent,
    })
}

fn read_as_super_user(client: &mut Raw) -> ErrorCode {
    let somebody = AuthId::digest("somebody", "else");
    let closed = RequestBody::Create(CreateRequest {
        path: "/closed".to_owned(),
        data: Some(b"secret".to_vec()),
        acl: vec![entry(Permission::ALL, &somebody.scheme, &somebody.id)],
        mode: CreateMode::Persistent,
    });
    client.done(closed);
    client.done(RequestBody::Auth(AuthRequest {
        kind: 0,
        scheme: "digest".to_owned(),
        auth: Some(b"super:password".to_vec()),
    }));
    client.fails(RequestBody::GetData(at("/closed", false)))
}

/// The simulation's tests compare what each option does with Apache's server.
#[tokio::test(flavor = "multi_thread")]
async fn each_option_reaches_the_server() {
    let digest = AuthId::digest("super", "password").id;
    let options = "--extended-types --container-check-interval 100ms \
                   --jute-maxbuffer 2000 --super-digest";
    let with = Served::start((options, [&*digest])).await;
    let without = Served::start("").await;
    type Ask = fn(&mut Raw) -> ErrorCode;
    let rows: [(Ask, [ErrorCode; 2]); 2] = [
        (
            |client| client.fails(create_for("/short", 1)),
            [ErrorCode::Unimplemented, ErrorCode::Ok],
        ),
        (read_as_super_user, [ErrorCode::NoAuth, ErrorCode::Ok]),
    ];
    for (ask, codes) in rows {
        let servers = [&without, &with];
        assert_eq!(servers.map(|server| ask(&mut server.client())), codes);
    }
    // By default, the interval of the checks is a minute.
    let mut client = with.client();
    client.done(create_for("/long", 3_600_000));
    until_deleted(&mut client, "/short");
    assert!(exists(&mut client, "/long"));
    // The request is longer than the buffer of one of the servers.
    let long = create_with("/longer", &[0; 3_000]);
    client.send(long.clone());
    assert!(client.is_closed());
    assert_eq!(without.client().fails(long), ErrorCode::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_for_development_names_what_is_wrong() {
    let stage = Stage::new();
    let port = stage.server.port().to_string();
    let file = stage.file("znodes.json");
    let in_use = format!("--port {port}");
    for (arguments, code, named) in [
        (&*in_use, 73, "in use"),
        ("--port 65535 --members 3", 64, "65535"),
        ("--port 65536", 64, "65536"),
        ("--port 0 --tick 0", 64, "--tick"),
        (
            "--port 0 --container-check-interval 0",
            64,
            "--container-check-interval",
        ),
        (
            "--port 0 --super-digest super:password",
            64,
            "--super-digest",
        ),
        ("--port 5000 --admin-port 5000", 64, "--admin-port"),
    ] {
        let server = format!("dev-server {arguments}");
        stage.run(server).await.refused(code, [named]);
    }
    for (data, named) in [
        (r#"{"/a/../b": null}"#, "/a/../b"),
        (r#"{"/a": 1}"#, "not a JSON object of paths and data"),
    ] {
        std::fs::write(file, data).expect("it is written");
        let ended = stage.run(("dev-server --port 0 --data", [file])).await;
        ended.refused(64, [named]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_for_development_serves_what_the_file_says() {
    let stage = Stage::new();
    let file = stage.file("znodes.json");
    std::fs::write(file, r#"{"/app/locks": null, "/app": "v1"}"#).expect("it is written");
    let server = Served::start(("--tick 200ms --data", [file])).await;
    let chroot = format!("{}/app", server.connect);
    let locked = run(&chroot, "lock /locks/a -- echo done").await;
    locked.printed("done\n");
    std::fs::write(file, "[]").expect("it is written");
    stage
        .run(("dev-server --port 0 --data", [file]))
        .await
        .failed_with(64);
}
