//! A place in the queue, and how it is given up.

use std::sync::Arc;

use crate::alarm::Alarm;
use crate::alone::{Alone, LastAlone};
use crate::contender::Identity;
use crate::ensemble::Created;
use crate::error::Error;
use crate::hold::{FencingToken, Grant};
use crate::live::{LiveSession, OwnPath};
use crate::node::{OwnNode, until_gone, withdraw};
use crate::path::NodePath;
use crate::rule::Rule;
use crate::session::Session;

/// A place in the queue. Dropped, it is given up in the background.
pub(super) struct Entry {
    pub(super) session: Session,
    pub(super) live: Arc<LiveSession>,
    pub(super) directory: NodePath,
    pub(super) identity: Identity,
    /// Unknown until the reply to the create has come.
    pub(super) node: Option<Created>,
    /// Lists the znode as one of the session's, also before its name is known.
    pub(super) listed: OwnPath,
    /// Whether nobody else can write to the znode, and its name says so.
    pub(super) announces: bool,
    /// Whether the number says that nobody else was in the queue when the znode was created.
    pub(super) foretold: bool,
    /// Known of a contender that is alone in the queue.
    pub(super) alone: Option<Alone>,
    pub(super) given_up: bool,
}

impl Entry {
    pub(super) fn path(&self) -> &str {
        self.node
            .as_ref()
            .map_or(self.directory.as_str(), |node| &node.path)
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.node.as_ref()?.path.rsplit('/').next()
    }

    pub(super) fn deleted(&self) -> Error {
        Error::ContenderDeleted {
            path: self.path().to_owned(),
            session: self.live.id(),
        }
    }

    /// Turns the place in the queue into what is held; `None` where the session's lease has lapsed,
    /// so that it may be over already.
    pub(super) fn grant(
        &mut self,
        rule: &Arc<dyn Rule>,
        last_alone: &LastAlone,
        alarm: Option<Alarm>,
    ) -> Option<Grant> {
        let node = self.node.as_ref()?;
        let token = FencingToken::from(node.stat.czxid);
        let mut own = OwnNode::unique(&self.live, &node.path);
        if self.announces {
            // Most often nobody is behind one that has not waited, and a mere deletion costs less.
            own = own.written_by_owner_alone(alarm.is_some());
        }
        if let Some(alone) = self.alone {
            own = own.alone(last_alone.clone(), alone);
        }
        let grant = Grant::new(self.session.clone(), self.live.clone(), own, token, alarm).ok()?;
        self.given_up = true;
        Some(grant.by(rule.clone()))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if std::mem::replace(&mut self.given_up, true) {
            return;
        }
        let node = self.node.take();
        let node = node.map(|node| OwnNode::unique(&self.live, &node.path));
        let (directory, identity) = (self.directory.clone(), self.identity);
        // Keeps the session open until the znode has gone.
        let session = self.session.clone();
        let live = self.live.clone();
        self.live.in_background(async move {
            let path = directory.as_str();
            let remove = || withdraw(&live, node.as_ref(), path, &identity);
            until_gone(&live, session, path, remove).await;
        });
    }
}
