//! Encrypted connections: who is let in, what a wrong certificate is reported as, and what a hold
//! survives.

mod apache;
mod held;
mod hostile;
mod refused;
mod roots;
mod unusable;

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_connection::{Config, Connection, Host, Tcp, UnsupportedRequests};
use zookeeper_recipes_core::{ConnectOptions, Error, Session, TlsOptions};
use zookeeper_recipes_suite::in_time;

/// Patient enough for a slow machine, and quick to end.
fn options(tls: TlsOptions) -> ConnectOptions {
    plain().tls(tls)
}

fn plain() -> ConnectOptions {
    ConnectOptions::new()
        .session_timeout(Duration::from_secs(6))
        .connection_timeout(Duration::from_secs(5))
}

async fn connect(address: &str, options: ConnectOptions) -> Session {
    let session = in_time("a session", Session::connect_with(address, options)).await;
    session.unwrap_or_else(|error| panic!("{address}: {error}"))
}

/// Why no session was opened, in words.
async fn refusal(address: &str, options: ConnectOptions) -> String {
    let opened = in_time("an error", Session::connect_with(address, options)).await;
    let error = opened.expect_err("no session");
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    error.to_string()
}

/// A session without recipes at this host, with a secret. Its driver runs.
fn session(name: &str, port: u16, tls: TlsOptions) -> Connection {
    let name = name.to_owned();
    let tcp = Tcp::new().encrypted(tls);
    let config = Config {
        hosts: vec![Host { name, port }],
        session_timeout: Duration::from_secs(30),
        auth: vec![("digest".to_owned(), b"service:a-secret".to_vec())],
        reply_limit: 1 << 20,
        seed: 7,
        unsupported: UnsupportedRequests::default(),
    };
    let (connection, driver) = Connection::new(Arc::new(tcp.expect("good options")), config);
    tokio::spawn(driver);
    connection
}
