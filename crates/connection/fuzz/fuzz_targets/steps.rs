//! Any order of requests, changes, cuts and restarts.

#![no_main]

#[allow(dead_code)]
#[path = "../../tests/connection/peer.rs"]
mod peer;
#[allow(dead_code)]
#[path = "../../tests/connection/steps.rs"]
mod steps;
#[allow(dead_code)]
#[path = "../../tests/connection/world.rs"]
mod world;

use libfuzzer_sys::fuzz_target;
use steps::{Step, keep_their_promises};
use world::World;

fuzz_target!(|data: &[u8]| {
    let (steps, _) = data.as_chunks::<3>();
    if steps.len() <= 200 {
        let steps = steps.iter().map(|bytes| Step::of(*bytes));
        keep_their_promises(World::connected(), steps);
    }
});
