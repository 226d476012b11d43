//! What a waiter knows when its watches are set.

use std::borrow::Cow;
use std::time::Duration;

use super::*;
use crate::hold::loss_watch::Certainty;
use crate::hold::open_session::OpenSession;
use crate::live::scripted::Scripted;
use crate::queue::Queue;
use crate::server::options::{ConnectOptions, DEFAULT_MAXBUFFER};
use crate::session::handle::Session;

/// A rule that no contender asks.
#[derive(Debug)]
struct Unasked;

impl Rule for Unasked {
    fn label(&self) -> Cow<'_, str> {
        "lock-".into()
    }

    fn decide(&self, _: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        unreachable!("nobody looks at the queue")
    }
}

/// The number of the connection is read before the watches are asked for.
#[tokio::test]
async fn own_znode_is_in_doubt_if_the_client_reconnects_while_its_watches_are_set() {
    let (live, server) = Scripted::open(Duration::from_millis(1));
    server.reconnect_at_reads();
    let session = Session::connect_in_background("zk.invalid", ConnectOptions::new());
    let queue = Queue::new(&session.expect("a good address"), "/locks", Unasked);
    let shared = queue.expect("a good path").shared;
    let open = OpenSession::new(live, DEFAULT_MAXBUFFER);
    let queue = SessionQueue::new(&shared, &open).expect("it is open");
    let own = open.znodes.numbered("/locks/own");
    let (mut watches, on) = (
        Watches::default(),
        Predecessors {
            contenders: Vec::new(),
            position: 0,
            data: None,
        },
    );
    let set = set_watches(&mut watches, &queue, &own, &on).await;
    assert!(matches!(set, Ok(None)));
    assert_eq!(watches.own.certainty(&*server), Certainty::Doubtful);
}
