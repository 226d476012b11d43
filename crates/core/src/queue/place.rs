//! A place in the queue, from before the create of its znode to the grant or the deletion.

use std::sync::Arc;

use crate::contender::Identity;
use crate::error::Error;
use crate::hold::abandoned::{Abandoned, may_exist};
use crate::hold::alone::Alone;
use crate::hold::grant::Grant;
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::{OwnZnode, Owned};
use crate::hold_state::FencingToken;
use crate::live::live_session::LiveSession;
use crate::queue::session_queue::SessionQueue;
use crate::server::ensemble::{Created, Reply};
use crate::server::error::ServerError;

/// A contender that enters the queue.
///
/// If it is dropped, its znode is deleted in the background. If no create was sent, nothing is
/// sent.
pub(crate) struct Entrant {
    identity: Identity,
    abandoned: Arc<Abandoned>,
    /// The znode, which may not be created yet. `None` before the first create, and once the
    /// contender has its place.
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
    pub(crate) fn new(queue: &SessionQueue<'_>) -> Entrant {
        Entrant {
            identity: queue.live.identity(),
            abandoned: queue.open.abandoned.clone(),
            owned: None,
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
    }

    /// Lists the znode of the next create among those of the session.
    pub(crate) fn list(&mut self, queue: &SessionQueue<'_>) {
        let znodes = &queue.open.znodes;
        let znode = znodes.sought(&queue.shared.directory, self.identity);
        match &mut self.owned {
            Some(owned) => owned.znode = znode,
            None => self.owned = Some(Owned::new(queue.shared.session.kept_open(), znode)),
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
        let owned = self.owned.take().expect("a create was sent");
        Place::new(owned, node, self.marks)
    }
}

impl Drop for Entrant {
    fn drop(&mut self) {
        let Some(mut owned) = self.owned.take() else {
            return;
        };
        match self.reply.take() {
            Some(reply) => {
                self.abandoned
                    .delete_once_answered(owned, reply, self.may_exist);
            }
            None if self.may_exist => {}
            // Each create was refused, or none was sent.
            None => owned.settle(),
        }
    }
}

/// A place in the queue.
///
/// If it is dropped, its znode is deleted in the background.
pub(crate) struct Place {
    /// `None` once the place is granted.
    owned: Option<Owned>,
    pub(crate) znode: OwnZnode,
    pub(crate) node: Created,
    token: FencingToken,
    /// True if the znode's number proves that nobody else was in the queue.
    pub(crate) known_alone: bool,
    /// Set if the contender's znode is the only child of the directory.
    pub(crate) alone: Option<Alone>,
}

impl Place {
    /// The place of a znode that has been created.
    pub(crate) fn new(mut owned: Owned, node: Created, marks: bool) -> Place {
        let mut znode = owned.znode.znodes().unique(&node.path);
        if marks {
            znode = znode.written_by_owner_alone();
        }
        owned.znode = znode.clone();
        Place {
            owned: Some(owned),
            znode,
            token: FencingToken::from(node.stat.czxid),
            node,
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
        me.is_some_and(|me| queue.shared.rule.hints().may_step_back(&me, data))
    }

    pub(crate) fn deleted(&self) -> Error {
        Error::ContenderDeleted {
            path: self.path().to_owned(),
            session: self.live().id(),
        }
    }

    fn live(&self) -> &LiveSession {
        self.znode.live()
    }

    /// Grants the place.
    ///
    /// `None` if the session's lease has lapsed, so the session may be over.
    pub(crate) fn grant(
        &mut self,
        queue: &SessionQueue<'_>,
        loss_watch: Option<LossWatch>,
    ) -> Option<Grant> {
        let lapses = self.live().may_grant()?;
        let mut owned = self.owned.take()?;
        if loss_watch.is_some() {
            // A contender that did not wait seldom has a waiter, and a plain deletion costs less.
            owned.znode.mark();
        }
        if let Some(alone) = self.alone {
            let last_alone = queue.open.last_alone.clone();
            let directory = queue.shared.directory.clone();
            owned.znode = owned
                .znode
                .clone()
                .when_gone(move || last_alone.has_gone(&directory, alone));
        }
        let granted = queue.open.granted.clone();
        let grant = Grant::new(owned, granted, lapses, self.token, loss_watch);
        Some(grant.by(queue.shared.rule.clone()))
    }

    /// Leaves the queue: deletes the znode, and waits for the answer.
    pub(crate) async fn leave(mut self) -> Result<(), ServerError> {
        let Some(owned) = &mut self.owned else {
            return Ok(());
        };
        owned.znode.remove().await?;
        owned.settle();
        Ok(())
    }
}
