//! What a waiter knows when its watches are set.

use std::borrow::Cow;
use std::sync::Arc;

use super::*;
use crate::hold::open_session::OpenSession;
use crate::hold::own_znode::SessionZnodes;
use crate::invalid_input::InvalidInput;
use crate::live::scripted::*;
use crate::queue::Queue;
use crate::rule::{QueueView, Rule, Verdict};
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
    let queue = SessionQueue::new(&shared.setup, &open).expect("it is open");
    let own = open.znodes.contender(name("/locks/own"));
    let mut watches = Watches::default();
    let on = Predecessors {
        contenders: Vec::new(),
        position: 0,
        data: None,
    };
    let set = watches.set(&queue, &own, &on).await;
    assert!(matches!(set, Ok(None)));
    let is_certain = watches.own.is_certain(&script.server());
    assert_eq!(is_certain, Ok(false));
}

/// A server, and the watch of a waiter on its own znode.
fn own_watch(watch: Watch) -> (Arc<Scripted>, Arc<ServerSession>, OwnWatch) {
    let (live, script) = Scripted::open(Duration::from_millis(1));
    let server = script.server();
    let znode = SessionZnodes::new(&live, DEFAULT_MAXBUFFER).contender(name("/own"));
    let own = OwnWatch {
        requested_over: server.connection(),
        watch: Some(LossWatch::new(znode, server.clone(), Some(watch))),
    };
    (script, server, own)
}

/// After a reconnect the server reports missed events in any order.
#[tokio::test(start_paused = true)]
async fn own_znode_is_in_doubt_once_the_connection_has_broken() {
    let (script, server, mut own) = own_watch(std::future::pending().boxed());
    assert_eq!(own.is_certain(&server), Ok(true));
    script.reconnect();
    assert_eq!(own.is_certain(&server), Ok(false));
}

#[tokio::test(start_paused = true)]
async fn own_znode_is_lost_once_its_watch_says_so() {
    let (script, server, mut own) =
        own_watch(std::future::ready(WatchEvent::Fired(EventType::NodeDeleted)).boxed());
    let lost = Err(LossReason::Deleted);
    assert_eq!(own.is_certain(&server), lost);
    script.reconnect();
    assert_eq!(own.is_certain(&server), lost);
}
