//! A contender that enters the queue, until it knows the path of its znode.

use std::sync::Arc;

use crate::contender::Identity;
use crate::hold::abandoned::{delete_once_answered, may_exist};
use crate::hold::own_znode::OwnNode;
use crate::hold::owned::Owned;
use crate::path::NodePath;
use crate::queue::place::Place;
use crate::server::ensemble::{Created, Reply};
use crate::server::error::ServerError;
use crate::session::handle::Session;
use crate::session::live::LiveSession;

/// A contender that enters the queue.
///
/// If it is dropped, its znode is deleted in the background. If no create was sent, nothing is
/// sent.
pub(crate) struct Entrant {
    directory: NodePath,
    identity: Identity,
    /// The znode, which may not be created yet. `None` once the contender has its place.
    owned: Option<Owned>,
    /// The reply to the last create, until it has come.
    reply: Option<Reply<'static, Created>>,
    /// True if the znode may exist, by the replies until now.
    may_exist: bool,
    /// True if only the session can write to the znode. The znode's name says so.
    marks: bool,
}

impl Entrant {
    /// A contender whose create is not sent yet.
    pub(crate) fn new(session: &Session, live: &Arc<LiveSession>, directory: &NodePath) -> Entrant {
        let identity = live.identity();
        let node = OwnNode::sought(live, directory, identity);
        Entrant {
            directory: directory.clone(),
            identity,
            owned: Some(Owned::new(session, live, node)),
            reply: None,
            may_exist: false,
            marks: false,
        }
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Makes the znode's name say that the contender's release is marked.
    pub(crate) fn mark(&mut self) {
        self.marks = true;
        self.identity = self.identity.marking();
        if let Some(owned) = &mut self.owned {
            owned.node = OwnNode::sought(&owned.live, &self.directory, self.identity);
        }
    }

    /// Waits for the reply to a create that was just sent.
    pub(crate) async fn answered(
        &mut self,
        reply: Reply<'static, Created>,
    ) -> Result<Created, ServerError> {
        let outcome = self.reply.insert(reply).await;
        self.reply = None;
        self.may_exist |= outcome.as_ref().err().is_none_or(may_exist);
        outcome
    }

    /// The contender's place in the queue: its znode has been created.
    pub(crate) fn has_place(mut self, node: Created) -> Place {
        let owned = self.owned.take().expect("an entrant has no place yet");
        Place::new(owned, node, self.marks)
    }
}

impl Drop for Entrant {
    fn drop(&mut self) {
        let Some(mut owned) = self.owned.take() else {
            return;
        };
        match self.reply.take() {
            Some(reply) => delete_once_answered(owned, reply, self.may_exist),
            None if self.may_exist => {}
            // Each create was refused, or none was sent.
            None => owned.settle(),
        }
    }
}
