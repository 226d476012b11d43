//! A server starts at once, and is gone when it is dropped.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, StartError};

use crate::raw::Raw;
use crate::{embedded, resume};

#[test]
fn server_takes_connections_when_start_returns() {
    let start = || {
        let began = Instant::now();
        let server = EmbeddedServer::start().expect("it starts");
        let client = Raw::connect(&server.connect_string());
        assert_ne!(client.connected.session_id, 0);
        began.elapsed()
    };
    // The machine may be busy: one quick start of many shows what the server takes.
    let is_quick = (0..500).any(|_| start() < Duration::from_millis(20));
    assert!(is_quick, "no start takes less than 20 ms");
}

#[test]
fn port_in_use_is_one_clear_error() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = other.local_addr().expect("it listens").port();
    let options = EmbeddedOptions {
        port,
        ..Default::default()
    };
    let error = EmbeddedServer::start_with(options).expect_err("the port is in use");
    assert!(matches!(error, StartError::PortInUse { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&port.to_string()), "{text}");
}

#[test]
fn dropped_server_is_gone_and_its_port_is_free() {
    let server = EmbeddedServer::start().expect("it starts");
    let port = server.port();
    let mut client = Raw::connect(&server.connect_string());
    drop(server);
    assert!(client.is_closed());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());

    let again = embedded(|it| it.port = port);
    assert_eq!(again.port(), port);
    let answer = resume(&again.connect_string(), &client);
    assert_eq!(answer.connected.session_id, 0, "the session is over");
}

#[test]
fn paused_server_that_is_dropped_is_gone() {
    let server = EmbeddedServer::start().expect("it starts");
    server.pause();
    drop(server);
}

#[test]
fn server_begins_with_the_given_znodes() {
    let server = embedded(|it| {
        it.znodes = vec![
            ("/app/config".to_owned(), b"v1".to_vec()),
            ("/app".to_owned(), b"an application".to_vec()),
        ];
    });
    let tree = server.administrator().tree();
    let found: Vec<(&str, &[u8])> = tree
        .iter()
        .map(|node| (node.path.as_str(), node.data.as_slice()))
        .collect();
    let wanted: [(&str, &[u8]); 2] = [("/app", b"an application"), ("/app/config", b"v1")];
    assert_eq!(found, wanted);
}

#[test]
fn znode_that_cannot_be_is_an_error_that_names_it() {
    let options = EmbeddedOptions {
        znodes: vec![("no-slash".to_owned(), Vec::new())],
        ..Default::default()
    };
    let error = EmbeddedServer::start_with(options).expect_err("it is no path");
    assert!(error.to_string().contains("no-slash"), "{error}");
}
