//! Any requests to the embedded server, which has to serve others afterwards.

#![no_main]

#[path = "../../../simulation/tests/embedded/requests.rs"]
mod requests;

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use requests::{send, serves_others, stream_of};
use zookeeper_recipes_simulation::EmbeddedServer;

/// After so many runs a new server is started, without the znodes of the earlier runs.
const RUNS: u32 = 1_000;

thread_local! {
    static SERVER: RefCell<Option<(EmbeddedServer, u32)>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    SERVER.with_borrow_mut(|kept| {
        if kept.as_ref().is_some_and(|(_, runs)| *runs == RUNS) {
            *kept = None;
        }
        let start = || (EmbeddedServer::start().expect("it starts"), 0);
        let (server, runs) = kept.get_or_insert_with(start);
        *runs += 1;
        let address = server.connect_string();
        send(&address, &stream_of(data));
        serves_others(&address);
    });
});
