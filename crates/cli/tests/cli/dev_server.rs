//! `zkr dev-server`: what it refuses, and what each of its options does.

use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use zookeeper_recipes_protocol::{
    AuthId, AuthRequest, CreateMode, CreateRequest, CreateTtlRequest, DeleteRequest, ErrorCode,
    Permission, RequestBody, SaslRequest,
};
use zookeeper_recipes_suite::raw::{Raw, anyone, at, create, entry};
use zookeeper_recipes_suite::{PATIENCE, in_time};

use crate::support::{Stage, run, start};

/// A server that `zkr` serves, on a free port.
struct Served {
    connect: String,
    _server: Child,
}

impl Served {
    async fn start(options: &[&str]) -> Served {
        let arguments = [&["dev-server", "--port", "0"], options].concat();
        let mut server = start("127.0.0.1:1", &arguments);
        let lines = BufReader::new(server.stdout.take().expect("a pipe"));
        let line = in_time("it starts", lines.lines().next_line()).await;
        let line = line.expect("it is read").expect("it serves");
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

/// The answers of a server without options and of one with these.
async fn without_and_with(options: &[&str], ask: impl Fn(&mut Raw) -> ErrorCode) -> [ErrorCode; 2] {
    let servers = [Served::start(&[]).await, Served::start(options).await];
    servers.each_ref().map(|server| ask(&mut server.client()))
}

fn done(client: &mut Raw, request: RequestBody) {
    client.done(request);
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

fn create_with(path: &str, length: usize) -> RequestBody {
    RequestBody::Create2(CreateRequest {
        path: path.to_owned(),
        data: Some(vec![0; length]),
        acl: anyone(Permission::ALL),
        mode: CreateMode::Persistent,
    })
}

fn empty_container(client: &mut Raw) {
    let container = RequestBody::CreateContainer(CreateRequest {
        path: "/container".to_owned(),
        data: Some(Vec::new()),
        acl: anyone(Permission::ALL),
        mode: CreateMode::Container,
    });
    done(client, container);
    done(client, create("/container/child", CreateMode::Persistent));
    let (path, version) = ("/container/child".to_owned(), -1);
    done(client, RequestBody::Delete(DeleteRequest { path, version }));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_for_development_names_what_is_wrong() {
    let stage = Stage::new();
    let port = stage.server.port().to_string();
    let file = stage.file("znodes.json");
    let name = file.to_str().expect("text");
    for (arguments, code, named) in [
        (vec!["--port", &port], 73, "in use"),
        (vec!["--port", "65535", "--members", "3"], 64, "65535"),
        (vec!["--port", "65536"], 64, "65536"),
        (vec!["--port", "0", "--tick", "0"], 64, "--tick"),
        (
            vec!["--port", "0", "--container-check-interval", "0"],
            64,
            "--container-check-interval",
        ),
        (
            vec!["--port", "0", "--super-digest", "super:password"],
            64,
            "--super-digest",
        ),
        (
            vec!["--port", "5000", "--admin-port", "5000"],
            64,
            "--admin-port",
        ),
    ] {
        let ended = stage.run(&[&["dev-server"], &arguments[..]].concat()).await;
        let line = ended.failed_with(code);
        assert!(line.contains(named), "{line}");
    }
    for (data, named) in [
        (r#"{"/a/../b": null}"#, "/a/../b"),
        (r#"{"/a": "1", "/a": "2"}"#, "/a is there twice"),
    ] {
        std::fs::write(&file, data).expect("it is written");
        let ended = stage
            .run(&["dev-server", "--port", "0", "--data", name])
            .await;
        let line = ended.failed_with(64);
        assert!(line.contains(named), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_for_development_serves_what_the_file_says() {
    let stage = Stage::new();
    let file = stage.file("znodes.json");
    std::fs::write(&file, r#"{"/app/locks": null, "/app": "v1"}"#).expect("it is written");
    let name = file.to_str().expect("text");
    let server = Served::start(&["--tick", "200ms", "--data", name]).await;
    let chroot = format!("{}/app", server.connect);
    let locked = run(&chroot, &["lock", "/locks/a", "--", "echo", "done"]).await;
    assert_eq!(
        (locked.code, &*locked.stdout),
        (Some(0), "done\n"),
        "{locked:?}"
    );
    std::fs::write(&file, "[]").expect("it is written");
    stage
        .run(&["dev-server", "--port", "0", "--data", name])
        .await
        .failed_with(64);
}

#[tokio::test(flavor = "multi_thread")]
async fn extended_types_let_a_znode_have_a_time_to_live() {
    let create = |client: &mut Raw| client.fails(create_for("/short", 1));
    let extended = ["--extended-types", "--container-check-interval", "100ms"];
    let codes = without_and_with(&extended, create).await;
    assert_eq!(codes, [ErrorCode::Unimplemented, ErrorCode::Ok]);

    let server = Served::start(&extended).await;
    let mut client = server.client();
    done(&mut client, create_for("/short", 1));
    done(&mut client, create_for("/long", 3_600_000));
    until_deleted(&mut client, "/short");
    assert!(exists(&mut client, "/long"));
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_containers_are_deleted_at_the_interval() {
    let slow = Served::start(&[]).await;
    let fast = Served::start(&["--container-check-interval", "100ms"]).await;
    let (mut slow, mut fast) = (slow.client(), fast.client());
    empty_container(&mut slow);
    empty_container(&mut fast);
    until_deleted(&mut fast, "/container");
    // The interval is a minute here.
    assert!(exists(&mut slow, "/container"));
}

#[tokio::test(flavor = "multi_thread")]
async fn super_user_of_the_digest_reads_what_nobody_may() {
    let read = |client: &mut Raw| {
        let somebody = AuthId::digest("somebody", "else");
        done(
            client,
            RequestBody::Create(CreateRequest {
                path: "/closed".to_owned(),
                data: Some(b"secret".to_vec()),
                acl: vec![entry(Permission::ALL, &somebody.scheme, &somebody.id)],
                mode: CreateMode::Persistent,
            }),
        );
        done(
            client,
            RequestBody::Auth(AuthRequest {
                kind: 0,
                scheme: "digest".to_owned(),
                auth: Some(b"super:password".to_vec()),
            }),
        );
        client.fails(RequestBody::GetData(at("/closed", false)))
    };
    let digest = AuthId::digest("super", "password").id;
    let codes = without_and_with(&["--super-digest", &digest], read).await;
    assert_eq!(codes, [ErrorCode::NoAuth, ErrorCode::Ok]);
}

#[tokio::test(flavor = "multi_thread")]
async fn write_beyond_a_hard_limit_is_refused_if_quotas_are_enforced() {
    let exceed = |client: &mut Raw| {
        done(client, create_with("/a", 0));
        let quota = "/zookeeper/quota/a";
        done(client, create_with(quota, 0));
        for (name, text) in [
            ("zookeeper_limits", "count=1,bytes=-1=;countHardLimit=1"),
            ("zookeeper_stats", "count=0,bytes=0"),
        ] {
            let mut request = create_with(&format!("{quota}/{name}"), 0);
            if let RequestBody::Create2(create) = &mut request {
                create.data = Some(text.as_bytes().to_vec());
            }
            done(client, request);
        }
        client.fails(create_with("/a/b", 0))
    };
    let codes = without_and_with(&["--enforce-quota"], exceed).await;
    assert_eq!(codes, [ErrorCode::Ok, ErrorCode::QuotaExceeded]);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_longer_than_the_buffer_ends_the_connection() {
    const LONGER: usize = 3_000;
    let servers = [
        Served::start(&[]).await,
        Served::start(&["--jute-maxbuffer", "2000"]).await,
    ];
    for (server, is_ended) in servers.iter().zip([false, true]) {
        let mut client = server.client();
        assert_eq!(client.fails(create_with("/short", 1_000)), ErrorCode::Ok);
        client.send(create_with("/long", LONGER));
        match is_ended {
            true => assert!(client.is_closed()),
            false => assert!(client.reply().is_some()),
        }
        assert_eq!(exists(&mut server.client(), "/long"), !is_ended);
    }
}

/// A client that waits for an answer to SASL would hang.
#[tokio::test(flavor = "multi_thread")]
async fn sasl_is_refused_with_a_code_before_the_connection_is_closed() {
    let server = Served::start(&[]).await;
    let mut client = server.client();
    let token = Some(Vec::new());
    let code = client.fails(RequestBody::Sasl(SaslRequest { token }));
    assert_eq!(code, ErrorCode::AuthFailed);
    assert!(client.is_closed());
}
