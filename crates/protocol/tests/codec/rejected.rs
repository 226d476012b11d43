//! The decoder reports what is wrong with a message.

use zookeeper_recipes_protocol::{
    DecodeError, ErrorCode, EventType, OpCode, Operation, ReadRequest, Reply, ReplyBody, Request,
    RequestBody, RequestHeader,
};

use crate::bytes::{body, request_frame};

/// A request with this number, and these bytes behind its header.
fn request(opcode: OpCode, bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::from(7_i32.to_be_bytes());
    body.extend(i32::from(opcode).to_be_bytes());
    body.extend(bytes);
    body
}

#[test]
fn strings_and_buffers() {
    let exists = |path: &[u8]| Request::decode(&request(OpCode::Exists, path));
    assert_eq!(
        exists(b"\x7f\xff\xff\xff/a"),
        Err(DecodeError::Truncated {
            needed: 0x7fff_ffff,
            left: 2
        })
    );
    assert_eq!(
        exists(b"\xff\xff\xff\xfe"),
        Err(DecodeError::NegativeLength(-2))
    );
    assert_eq!(
        exists(b"\xff\xff\xff\xff\x00"),
        Err(DecodeError::NullString)
    );
    let read = ReadRequest {
        path: String::new(),
        watch: true,
    };
    assert_eq!(
        exists(b"\x00\x00\x00\x00\x02").map(|request| request.body),
        Ok(RequestBody::Exists(read)),
        "an empty path is the server's to refuse, and any byte but 0 is true"
    );
}

#[test]
fn identity_that_is_missing_is_an_empty_one() {
    let acl =
        b"\x00\x00\x00\x02/a\x00\x00\x00\x01\x00\x00\x00\x1f\x00\x00\x00\x04auth\xff\xff\xff\xff\
        \xff\xff\xff\xff";
    let request = Request::decode(&request(OpCode::SetAcl, acl)).expect("kazoo sends it");
    let RequestBody::SetAcl(request) = request.body else {
        panic!("{request:?}");
    };
    assert_eq!(&*request.acl[0].id.scheme, "auth");
    assert_eq!(&*request.acl[0].id.id, "");
}

#[test]
fn counts() {
    let set_watches = |lists: &[u8]| {
        let bytes = [&[0; 8], lists].concat();
        Request::decode(&request(OpCode::SetWatches, &bytes))
    };
    assert_eq!(
        set_watches(b"\x00\x00\x00\x03\0\0\0\0\0\0\0\0"),
        Err(DecodeError::Truncated {
            needed: 12,
            left: 8
        }),
        "three strings take twelve bytes at least"
    );
    let Ok(Request { body, .. }) = set_watches(b"\xff\xff\xff\xff\x80\0\0\0\0\0\0\0") else {
        panic!("negative counts mean empty lists");
    };
    let RequestBody::SetWatches(set) = body else {
        panic!("another request: {body:?}");
    };
    assert!(set.data_watches.is_empty() && set.exist_watches.is_empty());
}

#[test]
fn transactions() {
    let header = |opcode: i32| [&opcode.to_be_bytes()[..], &[0], &[0xff; 4]].concat();
    let multi = |bytes: &[u8]| Request::decode(&request(OpCode::Multi, bytes));
    assert_eq!(multi(&header(14)), Err(DecodeError::NotInMulti(14)));
    assert_eq!(multi(&header(99)), Err(DecodeError::NotInMulti(99)));
    let check = [&header(13)[..], b"\x00\x00\x00\x02/a", &[0; 4]].concat();
    let read = [&header(4)[..], b"\x00\x00\x00\x02/a", &[0]].concat();
    let end = [0, 0, 0, 0, 1, 0, 0, 0, 0];
    let mixed = [&check[..], &read, &end].concat();
    assert_eq!(multi(&mixed), Err(DecodeError::MixedMulti));
    let ended_by_its_flag = [&check[..], &end].concat();
    assert!(multi(&ended_by_its_flag).is_ok());
    let read = Operation::GetData(ReadRequest::new("/a", false));
    assert_eq!(
        (read.path(), read.opcode()),
        ("/a", OpCode::GetData),
        "what decoders of transactions need to know"
    );
}

#[test]
fn header_of_a_broken_request_can_be_read() {
    let broken = request(OpCode::Create, b"\xff");
    assert!(Request::decode(&broken).is_err());
    let header = RequestHeader::peek(&broken).expect("a header");
    assert_eq!((header.xid, header.opcode), (7, OpCode::Create));
}

#[test]
fn unknown_numbers_are_values() {
    let unknown = request(OpCode::Unknown(4711), b"any");
    let decoded = Request::decode(&unknown).expect("a request");
    let expected = RequestBody::Other {
        opcode: OpCode::Unknown(4711),
        bytes: b"any".to_vec(),
    };
    assert_eq!(decoded.body, expected);
    assert_eq!(body(&request_frame(&decoded)), unknown);

    assert_eq!(ErrorCode::from(-4711), ErrorCode::Unknown(-4711));
    assert_eq!(ErrorCode::from(-101), ErrorCode::NoNode);
    assert_eq!(i32::from(EventType::Unknown(9)), 9);
    assert_eq!(ErrorCode::NoNode.to_string(), "NoNode (-101)");
    assert_eq!(ErrorCode::from(-4711).to_string(), "unknown error -4711");
}

#[test]
fn body_of_a_failed_reply_is_ignored() {
    let mut body = Vec::from(7_i32.to_be_bytes());
    body.extend(1_i64.to_be_bytes());
    body.extend((-115_i32).to_be_bytes());
    body.extend([0xff; 4]);
    let reply = Reply::decode(&body, OpCode::Sasl).expect("a reply");
    assert_eq!(reply.header.error, ErrorCode::AuthFailed);
    assert_eq!(reply.body, ReplyBody::Empty);
}
