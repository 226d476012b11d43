//! Decodes any bytes.

use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, DEFAULT_FRAME_LIMIT, FrameDecoder, OpCode, Reply, ReplyHeader,
    Request, RequestHeader,
};

use crate::bytes::{reply_frame, request_frame};

/// All numbers of operations, and some that are none.
pub(crate) fn opcodes() -> impl Iterator<Item = OpCode> {
    (-12..110).map(OpCode::from)
}

/// Decodes bytes as each message there is. What is decoded is encoded, too.
pub(crate) fn decode_as_all(body: &[u8]) {
    let mut frame = Vec::new();
    let _ = RequestHeader::peek(body);
    let _ = ReplyHeader::peek(body);
    if let Ok(request) = ConnectRequest::decode(body) {
        request.encode_frame(&mut frame);
        let again = crate::bytes::body(&std::mem::take(&mut frame));
        assert_eq!(ConnectRequest::decode(&again), Ok(request));
    }
    if let Ok(response) = ConnectResponse::decode(body) {
        response.encode_frame(&mut frame);
        let again = crate::bytes::body(&frame);
        assert_eq!(ConnectResponse::decode(&again), Ok(response));
    }
    if let Ok(request) = Request::decode(body) {
        let again = crate::bytes::body(&request_frame(&request));
        assert_eq!(Request::decode(&again), Ok(request));
    }
    for opcode in opcodes() {
        if let Ok(reply) = Reply::decode(body, opcode) {
            let again = crate::bytes::body(&reply_frame(&reply));
            assert_eq!(Reply::decode(&again, opcode), Ok(reply));
        }
    }
}

/// Takes a stream apart as a server does.
pub(crate) fn read_as_server(stream: &[u8]) {
    let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
    decoder.feed(stream);
    let _ = decoder.take_four_letter_word();
    while let Ok(Some(body)) = decoder.next_frame() {
        decode_as_all(body);
    }
    let _ = decoder.take_remaining();
}
