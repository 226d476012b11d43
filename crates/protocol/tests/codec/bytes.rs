//! Frames as bytes.

use zookeeper_recipes_protocol::{DEFAULT_FRAME_LIMIT, FrameDecoder, Reply, Request};

pub(crate) fn request_frame(request: &Request) -> Vec<u8> {
    let mut frame = Vec::new();
    request.encode_frame(&mut frame);
    frame
}

pub(crate) fn reply_frame(reply: &Reply) -> Vec<u8> {
    let mut frame = Vec::new();
    reply.encode_frame(&mut frame);
    frame
}

/// The body of one whole frame.
pub(crate) fn body(frame: &[u8]) -> Vec<u8> {
    let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
    decoder.feed(frame);
    let body = decoder.next_frame().expect("a valid length");
    let body = body.expect("a whole frame").to_vec();
    assert!(decoder.remaining().is_empty(), "one frame");
    body
}
