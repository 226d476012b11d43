//! The faults of the simulation reach clients over TCP.

use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_protocol::CreateMode;
use zookeeper_recipes_simulation::{EmbeddedServer, Fault, FaultKind, RequestKind};

use crate::raw::{Raw, create};

#[test]
fn reply_that_is_lost_leaves_what_was_created() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut client = Raw::connect(&server.connect_string());
    let fault = Fault::new(FaultKind::ReplyLost).on(RequestKind::Create);
    server.faults().inject(fault.of_process("tcp"));
    client.send(create("/there", CreateMode::Persistent));
    assert!(client.is_closed());
    assert_eq!(server.administrator().children("/"), ["there", "zookeeper"]);
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
