//! No message takes memory that its bytes do not justify.

#[path = "codec/apache.rs"]
mod apache;

use std::alloc::System;
use std::hint::black_box;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, DEFAULT_FRAME_LIMIT, FrameDecoder, OpCode, Reply, Request,
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many bytes a message may take for each byte of its frame. The most is taken by a list that
/// grows while its entries come: the smallest result of a transaction has nine bytes.
const TIMES: usize = 32;

/// Bytes that a frame of any length may take.
const BESIDES: usize = 512;

/// All that `work` allocates, and what its allocations grow by, freed in between or not.
fn allocated_by(work: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    work();
    region.change().bytes_allocated
}

fn check(body: &[u8]) {
    let most = TIMES * body.len() + BESIDES;
    let kinds: [(&str, &dyn Fn()); 3] = [
        ("request", &|| drop(black_box(Request::decode(body)))),
        ("handshake", &|| {
            drop(black_box(ConnectRequest::decode(body)))
        }),
        ("its answer", &|| {
            drop(black_box(ConnectResponse::decode(body)))
        }),
    ];
    for (kind, decode) in kinds {
        let bytes = allocated_by(decode);
        assert!(
            bytes <= most,
            "{kind}: {bytes} bytes for {}: {body:x?}",
            body.len()
        );
    }
    for opcode in (-12..110).map(OpCode::from) {
        let bytes = allocated_by(|| drop(black_box(Reply::decode(body, opcode))));
        assert!(
            bytes <= most,
            "{opcode:?}: {bytes} bytes for {}: {body:x?}",
            body.len()
        );
    }
}

/// Lists and buffers that claim more than there is, behind each header.
fn check_claims() {
    for opcode in -12_i32..110 {
        for claim in [i32::MAX, 1 << 24, 1 << 16, 100] {
            for zeros in (0..40).chain([4096]) {
                let mut body = Vec::from(7_i32.to_be_bytes());
                body.extend(opcode.to_be_bytes());
                body.resize(body.len() + zeros, 0);
                body.extend(claim.to_be_bytes());
                body.extend([0; 64]);
                check(&body);
            }
        }
    }
}

/// The smallest entries, as many as there can be.
fn check_smallest_entries() {
    let delete = [0, 0, 0, 2, 0, 0, 0, 0, 0];
    let mut results = vec![0; 16];
    let mut operations = Vec::from([0, 0, 0, 1, 0, 0, 0, 22]);
    for _ in 0..5000 {
        results.extend(delete);
        operations.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        operations.extend([0; 5]);
    }
    let end = [0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff];
    results.extend(end);
    operations.extend(end);
    check(&results);
    check(&operations);
    let mut children = vec![0; 16];
    children.extend(5000_i32.to_be_bytes());
    children.resize(children.len() + 20_000, 0);
    check(&children);
}

/// Each message of Apache's, with each of its bytes changed in two ways.
fn check_changed_messages() {
    for mut frame in apache::golden().into_values() {
        let body = &mut frame[4..];
        for place in 0..body.len() {
            let byte = body[place];
            for changed in [0x7f, 0xff] {
                body[place] = changed;
                check(body);
            }
            body[place] = byte;
        }
    }
}

/// A claimed length takes nothing before the bytes are there, and they are kept once.
fn check_frames() {
    let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
    let bytes = allocated_by(|| {
        decoder.feed(&(DEFAULT_FRAME_LIMIT as u32).to_be_bytes());
        decoder.feed(&[7; 10]);
        assert_eq!(decoder.next_frame(), Ok(None));
    });
    assert!(bytes < 100, "{bytes} bytes for 14");

    let part = [7; 4096];
    let mut fed = 10;
    let bytes = allocated_by(|| {
        while fed < DEFAULT_FRAME_LIMIT {
            let part = &part[..part.len().min(DEFAULT_FRAME_LIMIT - fed)];
            decoder.feed(part);
            fed += part.len();
        }
        let frame = decoder.next_frame().expect("a valid length");
        assert_eq!(frame.map(<[u8]>::len), Some(DEFAULT_FRAME_LIMIT));
    });
    assert!(
        bytes <= 2 * DEFAULT_FRAME_LIMIT,
        "{bytes} bytes for one frame"
    );

    // A decoder that has given out its frames keeps little, and takes no more for many frames.
    let bytes = allocated_by(|| {
        for _ in 0..1000 {
            decoder.feed(&[0, 0, 0, 4, 1, 2, 3, 4]);
            assert!(matches!(decoder.next_frame(), Ok(Some([1, 2, 3, 4]))));
        }
    });
    assert!(bytes < 100, "{bytes} bytes for a thousand small frames");
}

// One test: what is allocated is counted for the whole process.
#[test]
fn memory_is_bounded_by_what_was_received() {
    check_frames();
    check_claims();
    check_smallest_entries();
    check_changed_messages();
}
