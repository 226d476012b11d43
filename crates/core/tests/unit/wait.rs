//! What a waiter knows of its own znode.

use futures_util::future::FutureExt;

use super::*;
use crate::hold::own_znode::SessionZnodes;
use crate::live::scripted::Scripted;

/// After a reconnect the server reports missed events in any order.
#[tokio::test(start_paused = true)]
async fn own_znode_is_in_doubt_once_the_connection_has_broken() {
    let (live, server) = Scripted::open(Duration::from_millis(1));
    let watched = Watched {
        znode: SessionZnodes::new(&live).numbered("/own"),
        server: server.clone(),
    };
    let never = std::future::pending().boxed();
    let mut watches = Watches {
        own: Some(LossWatch::new(watched, Some(never))),
        connection: server.connection(),
        ..Watches::default()
    };
    assert_eq!(watches.look_at_own(&*server), Certainty::Certain);
    server.reconnect();
    assert_eq!(watches.look_at_own(&*server), Certainty::Doubtful);
}
