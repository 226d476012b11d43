//! TLS of Apache's server.

use futures_util::future::join_all;
use zookeeper_recipes_core::TlsOptions;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::in_time;
use zookeeper_recipes_suite::tls::{Authority, Files};
use zookeeper_recipes_testkit::{Server, ServerOptions, free_port};

use crate::{connect, options, plain, refusal};

const NETTY: &str = "org.apache.zookeeper.server.NettyServerCnxnFactory";
const X509: &str = "org.apache.zookeeper.server.auth.X509AuthenticationProvider";

/// A server with these certificates, which requires one of each client.
fn server_options(files: &Files) -> ServerOptions {
    let file = |name| files.path().join(name).display().to_string();
    ServerOptions::new()
        .configuration("serverCnxnFactory", NETTY)
        .configuration("ssl.keyStore.location", file("store.pem"))
        .configuration("ssl.keyStore.type", "PEM")
        .configuration("ssl.trustStore.location", file("ca.pem"))
        .configuration("ssl.trustStore.type", "PEM")
        .configuration("ssl.clientAuth", "need")
}

/// The files of a server and of a client of the same authority.
fn files(authority: &Authority) -> Files {
    let files = Files::new(authority, &authority.issue(&["service"]));
    let own = authority.issue(&["localhost"]);
    files.write("store.pem", &(own.key + &own.certificate));
    files
}

async fn assert_locks(address: &str, tls: TlsOptions) {
    let session = connect(address, options(tls)).await;
    let lock = ExclusiveLock::new(&session, "/locks/a").expect("a good path");
    let hold = in_time("the lock", lock.acquire()).await.expect("free");
    hold.release().await.expect("it is released");
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_with_a_secure_port_takes_clients_with_its_certificates() {
    let authority = Authority::new("root");
    let files = files(&authority);
    let port = free_port().expect("a free port");
    let configuration = server_options(&files)
        .configuration("secureClientPort", port.to_string())
        .configuration("secureClientPortAddress", "127.0.0.1");
    let server = Server::start(configuration).await.expect("it starts");
    let address = format!("localhost:{port}");
    assert_locks(&address, files.options()).await;

    let unknown = Authority::new("unknown");
    let stranger = Files::new(&unknown, &unknown.issue(&[]));
    let without = TlsOptions::new().roots(authority.root.as_bytes());
    let by_number = format!("127.0.0.1:{port}");
    let plain_port = format!("localhost:{}", server.port());
    let rows = [
        (&address, options(without), ["TLS: ", "client"]),
        (
            &address,
            options(stranger.options()),
            ["TLS: ", "no trusted root"],
        ),
        (
            &by_number,
            options(files.options()),
            ["", "is for other names"],
        ),
        // A plain port closes on TLS, and a secure port on a plain client.
        (&plain_port, options(files.options()), ["", "speak TLS"]),
        (&address, plain(), ["", "it expects TLS at this port"]),
    ];
    // Side by side, because each refusal takes the connection timeout.
    join_all(rows.map(async |(address, options, problem)| {
        let text = refusal(address, options).await;
        assert!(problem.iter().all(|it| text.contains(it)), "{text}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn port_of_a_server_with_port_unification_takes_clients_of_both_kinds() {
    let authority = Authority::new("root");
    let files = files(&authority);
    let configuration = server_options(&files)
        .configuration("client.portUnification", "true")
        // A server with a port for TLS alone adds it by itself.
        .configuration("authProvider.x509", X509);
    let server = Server::start(configuration).await.expect("it starts");
    let address = format!("localhost:{}", server.port());
    assert_locks(&address, files.options()).await;
    let session = connect(&address, plain()).await;
    session.close().await;
}
