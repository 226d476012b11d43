//! A znode of this process that is given up when it is dropped.

use std::sync::Arc;

use crate::live::LiveSession;
use crate::local::LocalTurn;
use crate::node::{OwnNode, until_gone};
use crate::session::Session;

/// A znode of this process. Dropped, it is deleted in the background, and the session is kept open
/// until then.
pub(crate) struct Owned {
    pub(crate) session: Session,
    pub(crate) live: Arc<LiveSession>,
    pub(crate) node: OwnNode,
    /// The turn within the process: passed on when the znode has gone.
    pub(crate) turn: Option<LocalTurn>,
    is_settled: bool,
}

impl Owned {
    pub(crate) fn new(session: &Session, live: &Arc<LiveSession>, node: OwnNode) -> Owned {
        Owned {
            session: session.clone(),
            live: live.clone(),
            node,
            turn: None,
            is_settled: false,
        }
    }

    /// Leaves nothing to delete: the znode has gone, or there never was one.
    pub(crate) fn settle(&mut self) {
        self.is_settled = true;
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let (node, live) = (self.node.clone(), self.live.clone());
        let kept_open = (self.turn.take(), self.session.clone());
        self.live.in_background(async move {
            let remove = || node.remove(&live);
            until_gone(&live, kept_open, node.path(), remove).await;
        });
    }
}
