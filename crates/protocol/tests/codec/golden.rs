//! The same bytes as Apache's classes, in both directions.
//!
//! `golden/apache-3.8.0.decoded.txt` has what each frame means.

use std::collections::BTreeSet;
use std::fmt::Write;

use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, OpCode, Reply, ReplyBody, ReplyHeader, Request, RequestBody,
    RequestHeader,
};

use crate::apache::golden;
use crate::bytes::{body, reply_frame, request_frame};

/// The operation that a reply answers. `None` for requests.
fn answered(name: &str) -> Option<OpCode> {
    Some(match name {
        "notification" => OpCode::Notification,
        "reply_acl" => OpCode::GetAcl,
        "reply_add_watch" => OpCode::AddWatch,
        "reply_all_children_number" => OpCode::GetAllChildrenNumber,
        "reply_children" => OpCode::GetChildren,
        "reply_children2" => OpCode::GetChildren2,
        "reply_create" => OpCode::Create,
        "reply_create2" => OpCode::Create2,
        "reply_data" | "reply_null_data" => OpCode::GetData,
        "reply_empty" => OpCode::Delete,
        "reply_ephemerals" => OpCode::GetEphemerals,
        "reply_multi" | "reply_multi_failed" => OpCode::Multi,
        "reply_multi_read" => OpCode::MultiRead,
        "reply_sasl" => OpCode::Sasl,
        "reply_stat" | "reply_no_node" => OpCode::Exists,
        "reply_sync" => OpCode::Sync,
        "reply_who_am_i" => OpCode::WhoAmI,
        _ => return None,
    })
}

/// The frames of all requests but the handshake, with their names.
fn requests() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let frames = golden().into_iter();
    frames.filter(|(name, _)| answered(name).is_none() && !name.starts_with("connect"))
}

/// What a frame means, and the frame that is encoded from that.
fn decoded(name: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut frame = Vec::new();
    match (name, answered(name)) {
        ("connect_request", _) => {
            let request = ConnectRequest::decode(body).expect("a handshake");
            request.encode_frame(&mut frame);
            (format!("{request:?}"), frame)
        }
        ("connect_response", _) => {
            let response = ConnectResponse::decode(body).expect("an answer");
            response.encode_frame(&mut frame);
            (format!("{response:?}"), frame)
        }
        (_, Some(opcode)) => {
            let reply = Reply::decode(body, opcode).expect("a reply");
            assert_eq!(ReplyHeader::peek(body), Ok(reply.header), "{name}");
            (format!("{reply:?}"), reply_frame(&reply))
        }
        (_, None) => {
            let request = Request::decode(body).expect("a request");
            let header = RequestHeader::peek(body).expect("a header");
            let shown = (header.xid, header.opcode);
            assert_eq!(shown, (request.xid, request.body.opcode()), "{name}");
            (format!("{request:?}"), request_frame(&request))
        }
    }
}

#[test]
fn messages_are_apaches() {
    let mut shown = String::new();
    for (name, frame) in golden() {
        let (meaning, again) = decoded(name, &body(&frame));
        assert_eq!(again, frame, "{name}");
        writeln!(shown, "{name} {meaning}").expect("text");
    }
    assert_eq!(shown, include_str!("golden/apache-3.8.0.decoded.txt"));
}

/// No text shows them.
#[test]
fn secrets_are_apaches() {
    let golden = golden();
    let password: Vec<u8> = (1..=16).collect();
    let body = |name| body(&golden[name]);
    let request = ConnectRequest::decode(&body("connect_request")).expect("a handshake");
    assert_eq!(request.password, password);
    let response = ConnectResponse::decode(&body("connect_response")).expect("an answer");
    assert_eq!(response.password, password);
    let request = |name| Request::decode(&body(name)).expect("a request").body;
    let RequestBody::Auth(auth) = request("auth") else {
        panic!("another request");
    };
    assert_eq!(auth.auth.as_deref(), Some(&b"u:p"[..]));
    let RequestBody::Sasl(sasl) = request("sasl") else {
        panic!("another request");
    };
    assert_eq!(sasl.token.as_deref(), Some(&b"tok"[..]));
    let reply = Reply::decode(&body("reply_sasl"), OpCode::Sasl).expect("a reply");
    let ReplyBody::Sasl(sasl) = reply.body else {
        panic!("another reply");
    };
    assert_eq!(sasl.token.as_deref(), Some(&b"tok"[..]));
}

/// A client before 3.4 does not send the last byte of its handshake.
#[test]
fn handshake_of_an_old_client_does_not_say_if_it_only_reads() {
    let new = body(&golden()["connect_request"]);
    let old = ConnectRequest::decode(&new[..44]).expect("a handshake");
    let new = ConnectRequest::decode(&new).expect("a handshake");
    assert_eq!((old.read_only, new.read_only), (None, Some(true)));
    assert_eq!(
        (old.session_id, old.password),
        (new.session_id, new.password)
    );
}

#[test]
fn bytes_behind_a_request_are_ignored_and_a_request_that_is_cut_short_is_an_error() {
    for (name, frame) in requests() {
        let mut body = body(&frame);
        let request = Request::decode(&body);
        for length in 0..body.len() {
            let cut = Request::decode(&body[..length]);
            assert!(cut.is_err(), "{length} bytes of {name}: {cut:?}");
        }
        body.extend([0, 0xff, 1]);
        assert_eq!(Request::decode(&body), request, "{name}");
    }
}

#[test]
fn each_operation_of_a_client_is_compared() {
    let opcode = |(_, frame): (_, Vec<u8>)| {
        let header = RequestHeader::peek(&body(&frame));
        header.expect("a header").opcode
    };
    let compared: BTreeSet<OpCode> = requests().map(opcode).collect();
    let is_of_a_client = |opcode: &OpCode| {
        !matches!(
            opcode,
            OpCode::Notification
                | OpCode::DeleteContainer
                | OpCode::CreateSession
                | OpCode::Error
                | OpCode::Unknown(_)
        )
    };
    let known: BTreeSet<OpCode> = (-20..200)
        .map(OpCode::from)
        .filter(is_of_a_client)
        .collect();
    assert_eq!(compared, known);
}
