//! No bytes panic.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::apache::golden;
use crate::decoding::{decode_as_all, opcodes, read_as_server};

/// Streams and messages that are broken in a way that a decoder may trust.
const CORPUS: &[&[u8]] = &[
    b"",
    b"\0",
    b"GET / HTTP/1.1\r\nHost: zookeeper\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", // the beginning of a TLS handshake
    b"\x00\x00\x00\x00",
    b"\x00\x00\x00\x01\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    // A handshake with a password of 2 GiB, and of a negative length.
    b"\x00\x00\x00\x1c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x17\x70\0\0\0\0\0\0\0\0\x7f\xff\xff\xff",
    b"\x00\x00\x00\x1c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x17\x70\0\0\0\0\0\0\0\0\x80\x00\x00\x00",
    // exists with a path of 2 GiB, of a negative length, of none, of bytes that are not UTF-8.
    b"\x00\x00\x00\x0c\0\0\0\x01\0\0\0\x03\x7f\xff\xff\xff",
    b"\x00\x00\x00\x0c\0\0\0\x01\0\0\0\x03\xff\xff\xff\xfe",
    b"\x00\x00\x00\x0d\0\0\0\x01\0\0\0\x03\xff\xff\xff\xff\x01",
    b"\x00\x00\x00\x0f\0\0\0\x01\0\0\0\x03\x00\x00\x00\x02\xc3\x28\x01",
    // create with 2 Gi entries in its ACL.
    b"\x00\x00\x00\x16\0\0\0\x01\0\0\0\x01\0\0\0\x02/a\0\0\0\0\x7f\xff\xff\xff",
    // setWatches with lists of negative counts.
    b"\x00\x00\x00\x1c\xff\xff\xff\xf8\0\0\0\x65\0\0\0\0\0\0\0\0\x80\0\0\0\xff\xff\xff\xff\0\0\0\0",
    // multi without an end, with an unknown operation, with a transaction inside.
    b"\x00\x00\x00\x08\0\0\0\x01\0\0\0\x0e",
    b"\x00\x00\x00\x11\0\0\0\x01\0\0\0\x0e\0\0\0\x63\0\xff\xff\xff\xff",
    b"\x00\x00\x00\x11\0\0\0\x01\0\0\0\x0e\0\0\0\x0e\0\xff\xff\xff\xff",
];

#[test]
fn corpus() {
    for stream in CORPUS {
        read_as_server(stream);
        decode_as_all(stream);
        // The bytes follow each header that a request can have.
        for opcode in opcodes() {
            let mut body = Vec::from(7_i32.to_be_bytes());
            body.extend(i32::from(opcode).to_be_bytes());
            body.extend(*stream);
            decode_as_all(&body);
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes(stream in vec(any::<u8>(), 0..200)) {
        read_as_server(&stream);
        decode_as_all(&stream);
    }

    #[test]
    fn arbitrary_bytes_behind_a_header(
        opcode in -12_i32..110,
        bytes in vec(prop_oneof![3 => Just(0_u8), 1 => any::<u8>()], 0..120),
    ) {
        let mut body = Vec::from(1_i32.to_be_bytes());
        body.extend(opcode.to_be_bytes());
        body.extend(bytes);
        decode_as_all(&body);
    }

    /// What can still be decoded is encoded as it was.
    #[test]
    fn messages_of_apache_with_changed_bytes(
        message in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let frames: Vec<Vec<u8>> = golden().into_values().collect();
        let mut frame = message.get(&frames).clone();
        for (place, byte) in &changes {
            *place.get_mut(&mut frame) = *byte;
        }
        read_as_server(&frame);
        read_as_server(&frame[..cut.index(frame.len())]);
        decode_as_all(&frame[4..]);
    }
}
