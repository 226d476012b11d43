//! A place in the queue, from the create to the grant or the deletion.

use std::sync::Arc;

use crate::contender::Identity;
use crate::error::Error;
use crate::hold::grant::Grant;
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::OwnNode;
use crate::hold::owned::Owned;
use crate::hold_state::FencingToken;
use crate::path::NodePath;
use crate::queue::alone::{Alone, LastAlone};
use crate::queue::session_queue::SessionQueue;
use crate::rule::Rule;
use crate::server::ensemble::Created;
use crate::server::error::ServerError;
use crate::session::handle::Session;
use crate::session::live::LiveSession;

/// A place in the queue.
///
/// If it is dropped, its znode is deleted in the background.
pub(crate) struct Place {
    directory: NodePath,
    identity: Identity,
    /// The znode, which may not be created yet. `None` once the place is granted.
    owned: Option<Owned>,
    live: Arc<LiveSession>,
    /// Unknown until the reply to the create has come.
    node: Option<Created>,
    /// True if only the session can write to the znode. The znode's name says so.
    pub(crate) marks: bool,
    /// True if the znode's number proves that nobody else was in the queue.
    pub(crate) known_alone: bool,
    /// Set if the contender is alone in the queue.
    pub(crate) alone: Option<Alone>,
}

impl Place {
    /// A place whose znode is about to be created.
    pub(crate) fn new(session: &Session, live: &Arc<LiveSession>, directory: &NodePath) -> Place {
        let identity = live.identity();
        let node = OwnNode::sought(live, directory, identity);
        Place {
            directory: directory.clone(),
            identity,
            owned: Some(Owned::new(session, live, node)),
            live: live.clone(),
            node: None,
            marks: false,
            known_alone: false,
            alone: None,
        }
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Makes the znode's name say that the contender's release is marked.
    pub(crate) fn mark(&mut self) {
        self.marks = true;
        self.identity = self.identity.marking();
        self.is(OwnNode::sought(&self.live, &self.directory, self.identity));
    }

    /// Notes that the znode has been created.
    pub(crate) fn created(&mut self, node: Created) {
        self.is(OwnNode::unique(&self.live, &node.path));
        self.node = Some(node);
    }

    /// Notes that the create was refused.
    ///
    /// If no earlier create can have been applied, there is no znode to delete.
    pub(crate) fn was_refused(&mut self, is_certain: bool) {
        if let Some(owned) = self.owned.as_mut().filter(|_| is_certain) {
            owned.settle();
        }
    }

    fn is(&mut self, node: OwnNode) {
        if let Some(owned) = &mut self.owned {
            owned.node = node;
        }
    }

    pub(crate) fn path(&self) -> &str {
        self.node
            .as_ref()
            .map_or(self.directory.as_str(), |node| &node.path)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.node.as_ref()?.path.rsplit('/').next()
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
        let token = FencingToken::from(self.created_node()?.stat.czxid);
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
        Some(Grant::new(owned, lapses, token, loss_watch).by(rule.clone()))
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

    pub(crate) fn created_node(&self) -> Option<&Created> {
        self.node.as_ref()
    }
}
