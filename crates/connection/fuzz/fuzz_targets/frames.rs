//! Any bytes, decoded as each message there is.

#![no_main]

#[allow(dead_code)]
#[path = "../../../protocol/tests/codec/bytes.rs"]
mod bytes;
#[allow(dead_code)]
#[path = "../../../protocol/tests/codec/decoding.rs"]
mod decoding;

use decoding::{decode_as_all, read_as_server};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    decode_as_all(data);
    read_as_server(data);
});
