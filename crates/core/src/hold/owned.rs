//! A znode of this process that is deleted if it is dropped.

use std::any::Any;
use std::sync::Arc;

use crate::hold::own_znode::{OwnNode, until_gone};
use crate::session::handle::Session;
use crate::session::live::LiveSession;

/// A value of any kind that is dropped once a znode is deleted.
pub(crate) type KeptUntilGone = Box<dyn Any + Send + Sync>;

/// A znode of this process. If it is dropped, it is deleted in the background.
///
/// The session is kept open until the znode is deleted.
pub(crate) struct Owned {
    pub(crate) session: Session,
    pub(crate) live: Arc<LiveSession>,
    pub(crate) node: OwnNode,
    /// Dropped once the znode is deleted.
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

    /// Notes that no deletion is needed: the znode is deleted, or was never created.
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
