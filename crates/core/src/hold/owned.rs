//! A znode of this process that is given up when it is dropped.

use std::any::Any;
use std::sync::Arc;

use crate::hold::own_znode::{OwnNode, until_gone};
use crate::session::handle::Session;
use crate::session::live::LiveSession;

/// Something that is dropped once a znode has gone, whatever it is.
pub(crate) type KeptUntilGone = Box<dyn Any + Send + Sync>;

/// A znode of this process. Dropped, it is deleted in the background, and the session is kept open
/// until then.
pub(crate) struct Owned {
    pub(crate) session: Session,
    pub(crate) live: Arc<LiveSession>,
    pub(crate) node: OwnNode,
    /// Dropped when the znode has gone.
    pub(crate) kept_until_gone: Option<KeptUntilGone>,
    is_settled: bool,
}

impl Owned {
    pub(crate) fn new(session: &Session, live: &Arc<LiveSession>, node: OwnNode) -> Owned {
        Owned {
            session: session.clone(),
            live: live.clone(),
            node,
            kept_until_gone: None,
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
        let kept_open = (self.kept_until_gone.take(), self.session.clone());
        self.live.in_background(async move {
            let remove = || node.remove(&live);
            until_gone(&live, kept_open, node.path(), remove).await;
        });
    }
}
