//! A container whose first process reaps nothing: `zkr` hands over without it.
//!
//! This process adopts the orphans of all that it starts, so the test has a binary of its own.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer};
use zookeeper_recipes_suite::eventually;

/// Long enough for its longest grace.
const SESSION_TIMEOUT: Duration = Duration::from_secs(200);

/// Far longer than the handover takes on any machine.
const GRACE: Duration = Duration::from_secs(40);

fn zkr(connect: &str, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_zkr"))
        .env("ZOOKEEPER_CONNECT", connect)
        .args(["--session-timeout", "200s"])
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()
        .expect("zkr starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_handed_over_though_nobody_reaps_the_orphans_of_the_command() {
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me)).expect("Linux has it");
    let mut options = EmbeddedOptions::default();
    options.simulation.max_session_timeout = Some(SESSION_TIMEOUT);
    let server = EmbeddedServer::start_with(options).expect("a server starts");
    let connect = server.connect_string();
    let files = tempfile::TempDir::new().expect("a directory can be created");
    let ready = files.path().join("ready");
    let name = ready.to_str().expect("text");
    // The child outlives its parent, which dies of the first signal.
    let script = r#"sh -c 'trap "" TERM; echo > "$1"; sleep 60; sleep 60' sh "$1" & wait"#;
    let lead = ["lead", "/leader", "--grace", "40s", "--id"];
    let first = ["first", "--once", "--", "sh", "-c", script, "sh", name];
    let mut first = zkr(&connect, &[&lead[..], &first].concat());
    eventually("the command runs", async || Path::new(name).exists()).await;
    let mut next = zkr(&connect, &[&lead[..], &["next", "--", "true"]].concat());
    let queue = || server.administrator().children("/leader").len();
    eventually("the next one waits", async || queue() == 2).await;

    let asked = Instant::now();
    let mut transfer = zkr(&connect, &["leader", "/leader", "--transfer-to", "next"]);
    let leads = async || next.try_wait().expect("it is a child").is_some();
    eventually("the next one has led", leads).await;
    assert!(asked.elapsed() < GRACE / 2, "{:?}", asked.elapsed());
    for ended in [&mut first, &mut transfer] {
        ended.wait().expect("it is a child");
    }
}
