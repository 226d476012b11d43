//! The faults of the simulation reach clients over TCP.

use std::time::{Duration, Instant};

use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_protocol::{CreateMode, ErrorCode, RequestBody};
use zookeeper_recipes_simulation::{EmbeddedServer, Fault, FaultKind, RequestKind};

use crate::raw::{Raw, at, create};

#[test]
fn reply_that_is_lost_leaves_what_was_created() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    let fault = Fault::new(FaultKind::ReplyLost).on(RequestKind::Create);
    server.faults().inject(fault);
    client.send(create("/there", CreateMode::Persistent));
    assert!(client.is_closed());
    assert_eq!(server.administrator().children("/"), ["there", "zookeeper"]);
}

#[test]
fn request_that_is_lost_creates_nothing() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    let fault = Fault::new(FaultKind::RequestLost).on(RequestKind::Create);
    server.faults().inject(fault.of_process("tcp"));
    client.send(create("/absent", CreateMode::Persistent));
    assert!(client.is_closed());
    assert_eq!(server.administrator().children("/"), ["zookeeper"]);
}

#[test]
fn request_that_is_late_is_answered_late() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    let late = Duration::from_millis(200);
    server
        .faults()
        .inject(Fault::new(FaultKind::RequestLate(late)));
    let began = Instant::now();
    client.done(RequestBody::Exists(at("/", false)));
    assert!(began.elapsed() >= late);
}

#[test]
fn session_can_be_expired_cut_off_and_forgotten() {
    let server = EmbeddedServer::start().expect("it starts");
    let address = server.connect_string();
    let mut client = Raw::connect(&address);
    let first = client.connected.clone();
    let session = SessionId(first.session_id);
    assert_eq!(server.administrator().server_of(session), Some(0));

    server.faults().disconnect(session);
    assert!(client.is_closed());
    let mut client = Raw::resume(&address, first.session_id, first.password.clone());
    assert_eq!(client.connected.session_id, first.session_id);

    server.faults().forget(session);
    let forgotten = Raw::resume(&address, first.session_id, first.password.clone());
    assert_ne!(forgotten.connected.session_id, 0);
    assert_ne!(forgotten.connected.session_id, first.session_id);

    server.administrator().expire(session);
    assert!(client.is_closed());
    let over = Raw::resume(&address, first.session_id, first.password);
    assert_eq!(over.connected.session_id, 0);
}

#[test]
fn throttled_request_is_refused() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    server.faults().inject(Fault::new(FaultKind::Throttled));
    let code = client.fails(create("/absent", CreateMode::Persistent));
    assert_eq!(code, ErrorCode::ThrottledOp);
}
