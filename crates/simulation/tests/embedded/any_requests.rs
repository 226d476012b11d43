//! Any requests: the server answers or closes the connection, does not panic, and serves others.

use std::panic;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;
use zookeeper_recipes_simulation::EmbeddedServer;

use crate::requests::{send, serves_others, stream_of};

/// A panic ends the task of one connection only, so that no client sees it for certain.
static PANICS: AtomicUsize = AtomicUsize::new(0);

static SERVER: LazyLock<EmbeddedServer> = LazyLock::new(|| {
    let earlier = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if thread::current().name() == Some("embedded-zookeeper") {
            PANICS.fetch_add(1, Ordering::SeqCst);
        }
        earlier(panicked);
    }));
    EmbeddedServer::start().expect("it starts")
});

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_requests_leave_a_server_that_serves_others(bytes in vec(any::<u8>(), 0..300)) {
        let address = SERVER.connect_string();
        send(&address, &stream_of(&bytes));
        serves_others(&address);
        prop_assert_eq!(PANICS.load(Ordering::SeqCst), 0, "the server has panicked");
    }
}
