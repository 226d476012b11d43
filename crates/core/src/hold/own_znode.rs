//! One's own znode, and how to be rid of it for certain.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::backoff::Backoff;
use crate::contender::Identity;
use crate::hold::deletions;
use crate::hold::find_own::own_nodes;
use crate::hold::guard::{Deletion, Guard};
use crate::hold::marked_release;
use crate::path::NodePath;
use crate::server::ensemble::{Operation, ServerSession, Stat};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::LiveSession;
use crate::session::own_znodes::Listed;

/// A znode that this process created in a session.
#[derive(Clone, Debug)]
pub(crate) struct OwnNode {
    path: Arc<str>,
    /// Lists it as one of its session's. The clones share it.
    _listed: Arc<Listed>,
    /// Where the name is not known yet: the directory, and what the name begins with.
    sought: Option<Box<(NodePath, Identity)>>,
    shared_name: Option<Box<SharedName>>,
    /// Where nobody but its owner can write to it: whether its deletion is marked as a release.
    /// The clones share it.
    marked_release: Option<Arc<AtomicBool>>,
    /// Called once it has gone for certain.
    when_gone: Option<WhenGone>,
}

/// What to call once a znode has gone. The znode does not know what it is for.
#[derive(Clone)]
struct WhenGone(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for WhenGone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WhenGone")
    }
}

/// Where others create a znode of the same name, so that it must be looked at to tell whose it is.
#[derive(Clone, Debug)]
struct SharedName {
    identity: Arc<[u8]>,
    guard: Guard,
    /// By which transaction it was created, once that is known.
    czxid: Option<i64>,
    /// Whether it is not known that the znode is there: not that it was created, or not that it
    /// has not been deleted since. The clones share it.
    doubtful: Arc<AtomicBool>,
    /// One deletion at a time: the second of two could be of the next holder's znode.
    deleting: Arc<tokio::sync::Mutex<()>>,
}

impl OwnNode {
    /// A znode whose name nobody else uses.
    pub(crate) fn unique(live: &Arc<LiveSession>, path: &str) -> OwnNode {
        let path: Arc<str> = path.into();
        OwnNode {
            _listed: Arc::new(live.own_znodes().list(path.clone(), None)),
            path,
            sought: None,
            shared_name: None,
            marked_release: None,
            when_gone: None,
        }
    }

    /// A contender's znode of this identity, of which it is not known whether it was created.
    pub(crate) fn sought(
        live: &Arc<LiveSession>,
        directory: &NodePath,
        identity: Identity,
    ) -> OwnNode {
        let prefix = format!("{directory}/{}", identity.prefix());
        OwnNode {
            sought: Some(Box::new((directory.clone(), identity))),
            ..OwnNode::unique(live, &prefix)
        }
    }

    /// The same, held alone, to which nobody else can write, so that its deletion can say that it is
    /// the release of a holder: from the beginning where `marked`, else from
    /// [`mark`](Self::mark) on.
    pub(crate) fn written_by_owner_alone(mut self, marked: bool) -> OwnNode {
        self.marked_release = Some(Arc::new(AtomicBool::new(marked)));
        self
    }

    /// The same, with something to call once it has gone for certain.
    pub(crate) fn when_gone(mut self, call: impl Fn() + Send + Sync + 'static) -> OwnNode {
        self.when_gone = Some(WhenGone(Arc::new(call)));
        self
    }

    /// Has its deletion marked from here on, if it can be.
    pub(crate) fn mark(&self) {
        if let Some(marked) = &self.marked_release {
            marked.store(true, Ordering::Relaxed);
        }
    }

    /// A znode that others create by the same name, told apart by the data it begins with, and of
    /// which it is not known whether it was created.
    pub(crate) fn doubtful(
        live: &Arc<LiveSession>,
        path: &str,
        identity: &[u8],
        guard: Guard,
    ) -> OwnNode {
        let demand = Some(guard.check());
        let shared_name = SharedName {
            identity: identity.into(),
            guard,
            czxid: None,
            doubtful: Arc::new(AtomicBool::new(true)),
            deleting: Arc::default(),
        };
        let path: Arc<str> = path.into();
        OwnNode {
            _listed: Arc::new(live.own_znodes().list(path.clone(), demand)),
            path,
            sought: None,
            shared_name: Some(Box::new(shared_name)),
            marked_release: None,
            when_gone: None,
        }
    }

    /// The same, now that it is known to be there, created by this transaction.
    pub(crate) fn certain(mut self, czxid: i64) -> OwnNode {
        if let Some(name) = &mut self.shared_name {
            name.czxid = Some(czxid);
            name.doubtful = Arc::new(AtomicBool::new(false));
        }
        self
    }

    /// Has it looked at before it is deleted: another may stand by its name.
    pub(crate) fn doubt(&self) {
        if let Some(name) = &self.shared_name {
            name.doubtful.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a znode found by this name is this one, in whatever session the server has made it.
    pub(crate) fn is(&self, data: &[u8]) -> bool {
        let name = self.shared_name.as_ref();
        name.is_none_or(|name| data.starts_with(&name.identity))
    }

    /// Whether a znode found by this name is this one, whatever was written to it since.
    pub(crate) fn is_still(&self, stat: &Stat) -> bool {
        let is_other = |czxid| czxid != stat.czxid;
        let name = self.shared_name.as_ref();
        !name.and_then(|name| name.czxid).is_some_and(is_other)
    }

    /// Whether nobody but its owner should ever write to it.
    pub(crate) fn is_written_by_owner_alone(&self) -> bool {
        self.marked_release.is_some()
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// What must be so for a transaction of the znode's holder to be done.
    pub(crate) fn checks(&self) -> Vec<Operation> {
        let stands = Operation::Check {
            path: self.path.to_string(),
            version: None,
        };
        let guard = self.shared_name.as_ref().map(|name| name.guard.check());
        std::iter::once(stands).chain(guard).collect()
    }

    /// Deletes the znode, again and again while the outcome is unknown, until the server's word or
    /// the session's end. That it is not there is success.
    ///
    /// Costs one request, or a share of one if many znodes are deleted at once. If others use the
    /// name, one read more before each repetition, also of a deletion that was dropped half-way.
    pub(crate) async fn remove(&self, live: &Arc<LiveSession>) -> Result<(), ServerError> {
        match &self.sought {
            Some(sought) => return withdraw(live, &sought.0, &sought.1).await,
            None => self.delete(live).await?,
        }
        if let Some(WhenGone(call)) = &self.when_gone {
            call();
        }
        Ok(())
    }

    async fn delete(&self, live: &Arc<LiveSession>) -> Result<(), ServerError> {
        let _alone = match &self.shared_name {
            Some(name) => Some(name.deleting.lock().await),
            None => None,
        };
        let server = &*live.server()?;
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        let mut marked = self
            .marked_release
            .as_ref()
            .is_some_and(|marked| marked.load(Ordering::Relaxed));
        loop {
            if self.shared_name.is_some() {
                // A request of the session that is still under way over the connection before
                // would otherwise not be refused, and could delete the next holder's znode.
                live.until_proven().await;
            }
            let result = match &self.shared_name {
                Some(name) => self.delete_by_shared_name(server, name).await,
                None if marked => marked_release::release(server, &self.path).await,
                None => deletions::delete(live, server, &self.path).await,
            };
            match result {
                Ok(()) => return Ok(()),
                Err(error) if error.is(Refusal::NoNode) => return Ok(()),
                // Whoever may not write may yet delete.
                Err(ServerError::Refused(refusal)) if marked && refusal != Refusal::Throttled => {
                    marked = false;
                }
                Err(ServerError::OutcomeUnknown(_) | ServerError::Refused(Refusal::Throttled)) => {
                    backoff.wait().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes the znode that others create by the same name, if it is this one.
    async fn delete_by_shared_name(
        &self,
        server: &dyn ServerSession,
        name: &SharedName,
    ) -> Result<(), ServerError> {
        let doubtful = name.doubtful.swap(true, Ordering::Relaxed);
        if doubtful && !self.stands(server).await? {
            return Ok(());
        }
        match name.guard.delete(server, &self.path).await? {
            Deletion::Done => Ok(()),
            Deletion::Unguarded if self.stands(server).await? => server.delete(&self.path).await,
            Deletion::Unguarded => Ok(()),
        }
    }

    /// Looks whether it is this znode that stands by the name.
    ///
    /// The session has been proven, by a write that its server has applied: so the server has
    /// applied all that the session asked for over the connection before.
    async fn stands(&self, server: &dyn ServerSession) -> Result<bool, ServerError> {
        let (data, _) = server.get(&self.path).await?;
        Ok(self.is(&data))
    }
}

/// Does something about a znode in the background until it is done: again, with a growing pause, if
/// the server refuses it, since it may change its mind.
///
/// `kept_open` keeps the session open until then, but not beyond a refusal: if nobody has the
/// session any more, its end deletes the znode.
pub(crate) async fn until_gone<F>(
    live: &LiveSession,
    kept_open: impl Send,
    path: &str,
    remove: impl Fn() -> F,
) where
    F: Future<Output = Result<(), ServerError>>,
{
    let mut kept_open = Some(kept_open);
    let mut backoff = Backoff::up_to(live.timeout());
    while let Err(ServerError::Refused(refusal)) = remove().await {
        if kept_open.take().is_some() {
            tracing::warn!(path, %refusal, "a znode was not deleted, and will be tried again");
        }
        backoff.wait().await;
    }
}

/// Deletes the znode of this identity, if it was created.
async fn withdraw(
    live: &Arc<LiveSession>,
    directory: &NodePath,
    identity: &Identity,
) -> Result<(), ServerError> {
    let server = live.server()?;
    // Sent after the create and on the same session, so that it sees the znode if there is one.
    for node in own_nodes(&*server, directory.as_str(), identity).await? {
        OwnNode::unique(live, &node.path).delete(live).await?;
    }
    Ok(())
}
