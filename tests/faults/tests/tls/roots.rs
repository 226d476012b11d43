//! The roots that the system trusts.

use std::process::Stdio;

use tokio::process::Command;
use zookeeper_recipes_core::TlsOptions;
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::in_time;
use zookeeper_recipes_suite::tls::{Authority, Files, Front};

use crate::{connect, options, refusal};

/// Set for the child process: the address of a server.
const SERVER: &str = "ZOOKEEPER_RECIPES_TLS_SERVER";
/// Set for the child process that does not trust the server.
const REFUSES: &str = "ZOOKEEPER_RECIPES_TLS_REFUSES";
const TEST: &str = "roots::server_is_trusted_by_the_roots_of_the_system_and_by_no_others";

async fn be_the_client(address: &str) {
    if std::env::var_os(REFUSES).is_some() {
        let text = refusal(address, options(TlsOptions::new())).await;
        assert!(text.contains("no trusted root has issued"), "{text}");
        return;
    }
    connect(address, options(TlsOptions::new()))
        .await
        .close()
        .await;
}

/// A process names the roots of its system by `SSL_CERT_FILE`. So each client is a process.
#[tokio::test(flavor = "multi_thread")]
async fn server_is_trusted_by_the_roots_of_the_system_and_by_no_others() {
    if let Ok(address) = std::env::var(SERVER) {
        return be_the_client(&address).await;
    }
    let server = EmbeddedServer::start().expect("it starts");
    let (authority, stranger) = (Authority::new("root"), Authority::new("stranger"));
    let shown = authority.issue(&["localhost"]);
    let files = Files::new(&authority, &shown);
    let front = Front::new(server.port(), shown.server(None)).await;
    for (root, refuses) in [(&authority, None), (&stranger, Some(REFUSES))] {
        let roots = files.write("system.pem", &root.root);
        let client = Command::new(std::env::current_exe().expect("a test binary"))
            .args(["--exact", TEST, "--nocapture"])
            .env(SERVER, front.at("localhost"))
            .envs(refuses.map(|refuses| (refuses, "1")))
            .env("SSL_CERT_FILE", roots)
            .env_remove("SSL_CERT_DIR")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = in_time("the client ends", client).await.expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {said}", root.root);
        assert!(said.contains("1 passed"), "{said}");
    }
}
