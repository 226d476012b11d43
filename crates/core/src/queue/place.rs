//! A place in the queue, from the reply to the create to the grant or the deletion.

use std::sync::Arc;

use crate::error::Error;
use crate::hold::grant::Grant;
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::OwnNode;
use crate::hold::owned::Owned;
use crate::hold_state::FencingToken;
use crate::queue::alone::{Alone, LastAlone};
use crate::queue::session_queue::SessionQueue;
use crate::rule::Rule;
use crate::server::ensemble::Created;
use crate::server::error::ServerError;
use crate::session::live::LiveSession;

/// A place in the queue.
///
/// If it is dropped, its znode is deleted in the background.
pub(crate) struct Place {
    /// `None` once the place is granted.
    owned: Option<Owned>,
    live: Arc<LiveSession>,
    pub(crate) node: Created,
    token: FencingToken,
    /// True if only the session can write to the znode. The znode's name says so.
    pub(crate) marks: bool,
    /// True if the znode's number proves that nobody else was in the queue.
    pub(crate) known_alone: bool,
    /// Set if the contender is alone in the queue.
    pub(crate) alone: Option<Alone>,
}

impl Place {
    /// The place of a znode that has been created.
    pub(crate) fn new(mut owned: Owned, node: Created, marks: bool) -> Place {
        let live = owned.live.clone();
        owned.node = OwnNode::unique(&live, &node.path);
        Place {
            owned: Some(owned),
            live,
            token: FencingToken::from(node.stat.czxid),
            node,
            marks,
            known_alone: false,
            alone: None,
        }
    }

    /// The place of a hold that was left to this process, and gets this token.
    pub(crate) fn inherited(owned: Owned, node: Created, token: FencingToken) -> Place {
        // Only the process that created the znode can mark its release.
        Place {
            token,
            ..Place::new(owned, node, false)
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.node.path
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.node.path.rsplit('/').next()
    }

    /// True if the contender may have to step back, with this data of the directory.
    pub(crate) fn may_step_back(&self, queue: &SessionQueue<'_>, data: Option<&[u8]>) -> bool {
        let me = self.name().and_then(|name| queue.contender(name));
        me.is_some_and(|me| queue.shared.rule.may_step_back(&me, data))
    }

    pub(crate) fn deleted(&self) -> Error {
        Error::ContenderDeleted {
            path: self.path().to_owned(),
            session: self.live.id(),
        }
    }

    /// Grants the place.
    ///
    /// `None` if the session's lease has lapsed, so the session may be over.
    pub(crate) fn grant(
        &mut self,
        rule: &Arc<dyn Rule>,
        last_alone: &LastAlone,
        loss_watch: Option<LossWatch>,
    ) -> Option<Grant> {
        let lapses = self.live.may_grant()?;
        let mut owned = self.owned.take()?;
        if self.marks {
            // A contender that did not wait seldom has a waiter, and a plain deletion costs less.
            owned.node = owned
                .node
                .clone()
                .written_by_owner_alone(loss_watch.is_some());
        }
        if let Some(alone) = self.alone {
            let last_alone = last_alone.clone();
            let node = owned.node.clone();
            owned.node = node.when_gone(move || last_alone.has_gone(alone));
        }
        Some(Grant::new(owned, lapses, self.token, loss_watch).by(rule.clone()))
    }

    /// Leaves the queue: deletes the znode, and waits for the answer.
    pub(crate) async fn leave(mut self) -> Result<(), ServerError> {
        let Some(owned) = &mut self.owned else {
            return Ok(());
        };
        owned.node.remove(&self.live).await?;
        owned.settle();
        Ok(())
    }
}
