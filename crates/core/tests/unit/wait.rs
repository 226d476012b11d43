//! What a waiter knows when its watches are set.

use std::borrow::Cow;

use super::*;
use crate::hold::open_session::OpenSession;
use crate::invalid_input::InvalidInput;
use crate::live::scripted::*;
use crate::queue::Queue;
use crate::queue::session_queue::Turn;
use crate::rule::Rule;
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
    let (live, script) = Scripted::open(Duration::from_millis(1));
    script.reconnect_at_reads();
    let session = Session::connect_in_background("zk.invalid", ConnectOptions::new());
    let queue = Queue::new(&session.expect("a good address"), "/locks", Unasked);
    let shared = queue.expect("a good path").shared;
    let open = OpenSession::new(live, DEFAULT_MAXBUFFER);
    let turn = Turn::default();
    let queue = SessionQueue::new(&shared, &open, &turn).expect("it is open");
    let own = open.znodes.numbered("/locks/own");
    own.note_gone();
    let owner = ZnodeOwner::new(shared.session.session_use(), own);
    let mut enqueued = Enqueued::new(&queue, owner, 0);
    let on = Predecessors {
        contenders: Vec::new(),
        position: 0,
        data: None,
    };
    let set = enqueued.set_watches(&on).await;
    assert!(matches!(set, Ok(None)));
    let is_certain = enqueued.own_watch.is_certain(&script.server());
    assert_eq!(is_certain, Ok(false));
}
