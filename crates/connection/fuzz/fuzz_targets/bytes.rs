//! Any bytes from a server, at any moment and in any pieces.

#![no_main]

#[allow(dead_code)]
#[path = "../../tests/connection/bytes.rs"]
mod bytes;
#[allow(dead_code)]
#[path = "../../tests/connection/peer.rs"]
mod peer;
#[allow(dead_code)]
#[path = "../../tests/connection/world.rs"]
mod world;

use std::time::Duration;

use bytes::break_a_connection_at_most;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, mut rest)) = data.split_first() else {
        return;
    };
    let mut parts = Vec::new();
    while let [wait, length, more @ ..] = rest {
        let (part, after) = more.split_at(more.len().min(usize::from(*length)));
        parts.push((Duration::from_millis(16 * u64::from(*wait)), part.to_vec()));
        rest = after;
    }
    let fragment = usize::from(first / 2) + 1;
    break_a_connection_at_most(first % 2 == 0, fragment, parts);
});
