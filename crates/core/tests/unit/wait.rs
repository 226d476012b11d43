//! What a waiter knows of its own znode.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;

use super::*;
use crate::hold::own_znode::SessionZnodes;
use crate::live::scripted::Scripted;
use crate::server::options::USUAL_MAXBUFFER;

/// A server, and the watches of a waiter with this watch on its own znode.
fn own_watch(watch: Watch) -> (Arc<Scripted>, Watches) {
    let (live, server) = Scripted::open(Duration::from_millis(1));
    let watched = Watched {
        znode: SessionZnodes::new(&live, USUAL_MAXBUFFER).numbered("/own"),
        server: server.clone(),
    };
    let watches = Watches {
        own: Some(LossWatch::new(watched, Some(watch))),
        connection: server.connection(),
        ..Watches::default()
    };
    (server, watches)
}

/// After a reconnect the server reports missed events in any order.
#[tokio::test(start_paused = true)]
async fn own_znode_is_in_doubt_once_the_connection_has_broken() {
    let (server, mut watches) = own_watch(std::future::pending().boxed());
    assert_eq!(watches.look_at_own(&*server), Certainty::Certain);
    server.reconnect();
    assert_eq!(watches.look_at_own(&*server), Certainty::Doubtful);
}

#[tokio::test(start_paused = true)]
async fn own_znode_is_lost_once_its_watch_says_so() {
    let (server, mut watches) = own_watch(std::future::ready(Event::Deleted).boxed());
    let lost = Certainty::Lost(ZnodeLoss::Deleted);
    assert_eq!(watches.look_at_own(&*server), lost);
    server.reconnect();
    assert_eq!(watches.look_at_own(&*server), lost);
}

#[tokio::test]
async fn step_back_is_ruled_out_by_data_that_has_not_changed() {
    for (may_step_back, is_ruled_out) in [(None, false), (Some(true), false), (Some(false), true)] {
        let mut watches = Watches {
            directory: Some(std::future::pending().boxed()),
            may_step_back,
            ..Watches::default()
        };
        assert_eq!(watches.step_back_is_ruled_out(), is_ruled_out);
        assert!(watches.directory.is_some(), "it is still watched");
        watches.directory = Some(std::future::ready(Event::DataChanged).boxed());
        assert!(!watches.step_back_is_ruled_out());
        // Its future is not polled again.
        assert!(!watches.step_back_is_ruled_out());
    }
}
