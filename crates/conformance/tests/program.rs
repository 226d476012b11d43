//! `zkr-conformance` on servers that run already.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use zookeeper_recipes_protocol::{ConnectRequest, FRAME_HEADER};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer};
use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};
use zookeeper_recipes_testkit::{Server, ServerOptions};

/// How many promises the assignment has.
const OF_THE_ASSIGNMENT: usize = 4;

async fn run(connect: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zkr-conformance"));
    command.args(["--connect", connect]).args(arguments);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(300), command.output()).await;
    ended.expect("it ends").expect("it starts")
}

fn outcomes(output: &Output) -> Vec<Value> {
    let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    object["outcomes"].as_array().expect("a list").clone()
}

fn promises<'a>(outcomes: &'a [Value], verdict: &str) -> Vec<&'a str> {
    let all = outcomes.iter().filter(|it| it["verdict"] == verdict);
    all.filter_map(|it| it["promise"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recipe_conforms_beside_other_clients_and_nothing_is_left() {
    let options = EmbeddedOptions {
        members: 3,
        znodes: vec![("/app".to_owned(), Vec::new())],
        ..EmbeddedOptions::default()
    };
    let server = EmbeddedServer::start_with(options).expect("it starts");
    let connect = format!("{}/app", server.connect_string());
    let output = run(&connect, &["--json"]).await;
    let outcomes = outcomes(&output);
    assert_eq!(output.status.code(), Some(0), "{outcomes:#?}");
    assert_eq!(
        promises(&outcomes, "kept").len(),
        6 * 11 - 1 + OF_THE_ASSIGNMENT,
        "{outcomes:#?}"
    );
    let skipped = promises(&outcomes, "skipped");
    assert_eq!(skipped, ["first come, first served"], "of the single znode");
    assert!(server.administrator().children("/app").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn assignment_conforms_on_apaches_server() {
    let server = Server::start(ServerOptions::new()).await;
    let server = server.expect("it starts");
    let output = run(
        &server.connect_string(),
        &["--recipe", "assignment", "--json"],
    )
    .await;
    let outcomes = outcomes(&output);
    assert_eq!(promises(&outcomes, "kept").len(), OF_THE_ASSIGNMENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_promise_is_found_and_the_others_are_checked() {
    const SYSTEM_ERROR: i32 = -1;
    const AUTH_FAILED: i32 = -102;
    for (recipe, operation, path, code, promise) in [
        // No guarded write is done.
        (
            "lock",
            Operation::Multi,
            "lock-stored",
            SYSTEM_ERROR,
            "lock: a guarded write is done while its hold is held",
        ),
        // No worker may lock one of the partitions.
        (
            "assignment",
            Operation::Create,
            "assignment/balance/locks/3",
            AUTH_FAILED,
            "assignment: a worker that comes",
        ),
    ] {
        let server = EmbeddedServer::start().expect("it starts");
        let proxy = Proxy::start(server.connect_string()).await;
        let proxy = proxy.expect("it starts");
        let refused = Fault::on(operation).under(format!("/zkr-conformance/{path}"));
        proxy.fault(refused.repeatedly().refused(code));
        let output = run(&proxy.connect_string(), &["--recipe", recipe]).await;
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(76), "{text}");
        let broken: Vec<&str> = text.lines().filter(|it| it.starts_with("BAD ")).collect();
        assert_eq!(broken.len(), 1, "{text}");
        assert!(broken[0].contains(promise), "{text}");
    }
}

/// The handshake by which the check ends a session, with a password that the server did not give.
fn with_another_password(frame: &[u8]) -> Vec<u8> {
    // The sessions of the recipes ask for another timeout.
    const OF_THE_CHECK: i32 = 5_000;
    let request = ConnectRequest::decode(&frame[FRAME_HEADER..]);
    let mut request = request.expect("a handshake");
    if request.session_id != 0 && request.timeout == OF_THE_CHECK {
        request.password.fill(7);
    }
    let mut changed = Vec::new();
    request.encode_frame(&mut changed);
    changed
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_passwords_of_apaches_kind_is_skipped_by_name() {
    let server = EmbeddedServer::start().expect("it starts");
    let proxy = Proxy::start(server.connect_string())
        .await
        .expect("it starts");
    let handshake = Fault::on(Operation::Connect).repeatedly();
    proxy.fault(handshake.request_replaced(with_another_password));
    let output = run(&proxy.connect_string(), &["--recipe", "lock", "--json"]).await;
    let outcomes = outcomes(&output);
    assert_eq!(
        promises(&outcomes, "skipped"),
        [
            "when a holder's session expires, it learns of it, and all waiters get through",
            "a waiter whose session expires learns of it",
        ],
        "{outcomes:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn path_that_exists_and_server_that_is_absent_are_refused() {
    let options = EmbeddedOptions {
        znodes: vec![("/zkr-conformance/others".to_owned(), Vec::new())],
        ..EmbeddedOptions::default()
    };
    let server = EmbeddedServer::start_with(options).expect("it starts");
    let output = run(&server.connect_string(), &[]).await;
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{text}");
    assert!(
        text.starts_with("zkr-conformance: /zkr-conformance: "),
        "{text}"
    );
    assert_eq!(
        server.administrator().children("/zkr-conformance"),
        ["others"]
    );
    for (connect, arguments, code) in [
        ("zk 1:2181", &[][..], 64),
        (&server.connect_string(), &["--path", "relative"], 64),
        (&server.connect_string(), &["--recipe", "none"], 64),
        ("127.0.0.1:1", &[], 69),
    ] {
        let output = run(connect, arguments).await;
        assert_eq!(output.status.code(), Some(code), "{connect} {arguments:?}");
    }
}
