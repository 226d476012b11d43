//! Tests of `src/proxy/frame.rs`.

use zookeeper_recipes_protocol::{
    CheckRequest, CreateMode, CreateRequest, DeleteRequest, PASSWORD_LENGTH, SetDataRequest,
    WatcherEvent,
};

use super::*;

fn body(request: &protocol::Request) -> Vec<u8> {
    let mut frame = Vec::new();
    request.encode_frame(&mut frame);
    frame.split_off(FRAME_HEADER)
}

#[test]
fn paths_of_all_kinds_in_a_transaction_are_found() {
    let create = CreateRequest {
        path: "/created".to_owned(),
        data: Some(b"data".to_vec()),
        acl: Vec::new(),
        mode: CreateMode::Persistent,
    };
    let check = CheckRequest {
        path: "/checked".to_owned(),
        version: 0,
    };
    let set = SetDataRequest {
        path: "/set".to_owned(),
        data: None,
        version: 0,
    };
    let delete = DeleteRequest {
        path: "/deleted".to_owned(),
        version: 0,
    };
    let request = Request::parse(&body(&protocol::Request {
        xid: 7,
        body: RequestBody::Multi(vec![
            protocol::Operation::Check(check),
            protocol::Operation::Create2(create),
            protocol::Operation::SetData(set),
            protocol::Operation::Delete(delete),
        ]),
    }));
    let request = request.expect("a request");
    assert_eq!((request.xid, request.operation), (7, Operation::Multi));
    assert_eq!(request.codes, [14, 13, 15, 5, 2]);
    assert_eq!(request.paths, ["/checked", "/created", "/set", "/deleted"]);
}

#[test]
fn handshake_without_its_session_is_a_first_one() {
    let handshake = |session_id, password: [u8; PASSWORD_LENGTH]| {
        let mut frame = Vec::new();
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 77,
            timeout: 6000,
            session_id,
            password: password.to_vec(),
            read_only: Some(true),
        };
        request.encode_frame(&mut frame);
        frame
    };
    let first = handshake(0, [0; PASSWORD_LENGTH]);
    let later = handshake(0x77, [9; PASSWORD_LENGTH]);
    assert_eq!(without_session(&later), first);
    assert_eq!(without_session(&first), first);
    for length in 0..FRAME_HEADER + 4 {
        assert_eq!(without_session(&later[..length]), later[..length]);
    }
}

#[test]
fn broken_requests_are_known_by_their_headers() {
    let broken = [&7_i32.to_be_bytes()[..], &15_i32.to_be_bytes(), &[0x7f; 4]].concat();
    let request = Request::parse(&broken).expect("a request");
    assert_eq!((request.xid, request.operation), (7, Operation::Create));
    assert_eq!(request.codes, [15]);
    assert_eq!(request.paths, [""; 0]);
    assert_eq!(Request::parse(&broken[..7]), None);
}

#[test]
fn path_of_a_notification_is_found() {
    let event = WatcherEvent {
        kind: 1.into(),
        state: 3.into(),
        path: "/watched".to_owned(),
    };
    let mut frame = Vec::new();
    Reply::notification(event).encode_frame(&mut frame);
    let body = &frame[FRAME_HEADER..];
    assert_eq!(notified_path(body).as_deref(), Some("/watched"));
    assert_eq!(notified_path(&body[..body.len() - 1]), None);
}
