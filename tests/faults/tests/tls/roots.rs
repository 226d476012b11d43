//! The roots that the system trusts.

use std::process::Stdio;

use futures_util::future::join_all;
use tokio::process::Command;
use zookeeper_recipes_core::TlsOptions;
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::in_time;
use zookeeper_recipes_suite::tls::{Authority, Files, Front};

use crate::{connect, options, refusal};

/// Set for the child process: the address of a server.
const SERVER: &str = "ZOOKEEPER_RECIPES_TLS_SERVER";
/// Set for a child process that names its roots: their file.
const ROOTS: &str = "ZOOKEEPER_RECIPES_TLS_ROOTS";
/// Set for a child process that does not trust the server.
const REFUSES: &str = "ZOOKEEPER_RECIPES_TLS_REFUSES";
const TEST: &str = "roots::server_is_trusted_by_the_named_roots_or_by_the_systems_and_by_no_others";

async fn be_the_client(address: &str) {
    let mut tls = TlsOptions::new();
    if let Some(file) = std::env::var_os(ROOTS) {
        tls = tls.roots_from(file);
    }
    if std::env::var_os(REFUSES).is_some() {
        let text = refusal(address, options(tls)).await;
        assert!(text.contains("no trusted root has issued"), "{text}");
        return;
    }
    connect(address, options(tls)).await.close().await;
}

/// A process names the roots of its system by `SSL_CERT_FILE`. So each client is a process.
///
/// If roots are named, a public authority cannot issue certificates for the servers.
#[tokio::test(flavor = "multi_thread")]
async fn server_is_trusted_by_the_named_roots_or_by_the_systems_and_by_no_others() {
    if let Ok(address) = std::env::var(SERVER) {
        return be_the_client(&address).await;
    }
    let server = EmbeddedServer::start().expect("it starts");
    let (authority, stranger) = (Authority::new("root"), Authority::new("stranger"));
    let shown = authority.issue(&["localhost"]);
    let files = Files::new(&authority, &shown);
    let front = Front::new(server.port(), shown.server(None)).await;
    let good = files.write("good.pem", &authority.root);
    let bad = files.write("bad.pem", &stranger.root);
    let rows = [
        (&good, None, false),
        (&bad, None, true),
        (&bad, Some(&good), false),
        (&good, Some(&bad), true),
    ];
    // Side by side, because each refusal takes the connection timeout.
    join_all(rows.map(async |(system, named, refuses)| {
        let client = Command::new(std::env::current_exe().expect("a test binary"))
            .args(["--exact", TEST, "--nocapture"])
            .env(SERVER, front.at("localhost"))
            .env("SSL_CERT_FILE", system)
            .env_remove("SSL_CERT_DIR")
            .envs(named.map(|file| (ROOTS, file)))
            .envs(refuses.then_some((REFUSES, "1")))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = in_time("the client ends", client).await.expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        let who = format!("the system's {system:?}, named {named:?}");
        assert!(output.status.success(), "{who}: {said}");
        assert!(said.contains("1 passed"), "{who}: {said}");
    }))
    .await;
}
