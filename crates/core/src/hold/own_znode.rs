//! A znode of this process, and how to delete it for certain.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::FutureExt;

use crate::backoff::Backoff;
use crate::contender::Identity;
use crate::hold::deletions;
use crate::hold::find_own::own_paths;
use crate::hold::marked_release;
use crate::hold::under_way::UnderWay;
use crate::path::NodePath;
use crate::server::ensemble::{Operation, ServerSession, Stat};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::LiveSession;
use crate::session::own_znodes::Listed;

/// A znode that this process created in a session.
#[derive(Clone, Debug)]
pub(crate) struct OwnNode {
    path: Arc<str>,
    /// Lists the znode as one of its session's. The clones share the entry.
    _listed: Arc<Listed>,
    /// The directory and the identity, if the znode's name is not known yet.
    sought: Option<Box<(NodePath, Identity)>>,
    shared_name: Option<Box<SharedName>>,
    /// True if the deletion is marked as a release.
    ///
    /// `None` if others may write to the znode.
    ///
    /// The clones share the flag.
    marked_release: Option<Arc<AtomicBool>>,
    /// Called once the znode is deleted for certain.
    when_gone: Option<WhenGone>,
}

/// A function to call once a znode is deleted.
///
/// The znode does not know what the function is for.
#[derive(Clone)]
struct WhenGone(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for WhenGone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WhenGone")
    }
}

/// What identifies the znode if other clients create znodes of the same name.
#[derive(Clone, Debug)]
struct SharedName {
    identity: Arc<[u8]>,
    /// The transaction that created the znode, once it is known.
    czxid: Option<i64>,
    /// True if the znode may be absent: the create's reply is outstanding, or a delete was sent.
    ///
    /// The clones share the flag.
    doubtful: Arc<AtomicBool>,
    /// The one deletion that is under way: a second one could delete the next holder's znode.
    ///
    /// The clones share it.
    deleting: Arc<UnderWay<Result<(), ServerError>>>,
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

    /// A contender's znode of this identity that may have been created.
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

    /// Notes that only the owner can write to the znode, which allows a mark.
    ///
    /// The deletion is marked as a release if `marked` is true, or once [`mark`](Self::mark) is
    /// called.
    pub(crate) fn written_by_owner_alone(mut self, marked: bool) -> OwnNode {
        self.marked_release = Some(Arc::new(AtomicBool::new(marked)));
        self
    }

    /// Adds a function to call once the znode is deleted for certain.
    pub(crate) fn when_gone(mut self, call: impl Fn() + Send + Sync + 'static) -> OwnNode {
        self.when_gone = Some(WhenGone(Arc::new(call)));
        self
    }

    /// Marks the deletion as a release from now on, if others cannot write.
    pub(crate) fn mark(&self) {
        if let Some(marked) = &self.marked_release {
            marked.store(true, Ordering::Relaxed);
        }
    }

    /// A znode that may have been created, with a name that other clients use.
    ///
    /// Its data begins with `identity`, which tells it from the other znodes.
    pub(crate) fn doubtful(live: &Arc<LiveSession>, path: &str, identity: &[u8]) -> OwnNode {
        let identity: Arc<[u8]> = identity.into();
        let shared_name = SharedName {
            identity: identity.clone(),
            czxid: None,
            doubtful: Arc::new(AtomicBool::new(true)),
            deleting: Arc::default(),
        };
        let path: Arc<str> = path.into();
        OwnNode {
            _listed: Arc::new(live.own_znodes().list(path.clone(), Some(identity))),
            path,
            sought: None,
            shared_name: Some(Box::new(shared_name)),
            marked_release: None,
            when_gone: None,
        }
    }

    /// Notes that the znode is there, created by this transaction.
    pub(crate) fn certain(mut self, czxid: i64) -> OwnNode {
        if let Some(name) = &mut self.shared_name {
            name.czxid = Some(czxid);
            name.doubtful = Arc::new(AtomicBool::new(false));
        }
        self
    }

    /// Notes that the znode may be absent. Its deletion then reads the znode first.
    pub(crate) fn doubt(&self) {
        if let Some(name) = &self.shared_name {
            name.doubtful.store(true, Ordering::Relaxed);
        }
    }

    /// True if the znode found by this name is this one, in any session.
    pub(crate) fn is(&self, data: &[u8]) -> bool {
        let name = self.shared_name.as_ref();
        name.is_none_or(|name| data.starts_with(&name.identity))
    }

    /// True if the znode found by this name is this one, with any data.
    pub(crate) fn is_still(&self, stat: &Stat) -> bool {
        let is_other = |czxid| czxid != stat.czxid;
        let name = self.shared_name.as_ref();
        !name.and_then(|name| name.czxid).is_some_and(is_other)
    }

    /// True if nobody but the owner should be able to write to the znode.
    pub(crate) fn is_written_by_owner_alone(&self) -> bool {
        self.marked_release.is_some()
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// True if other clients create znodes of the same name.
    pub(crate) fn shares_its_name(&self) -> bool {
        self.shared_name.is_some()
    }

    /// The condition of a transaction of the znode's holder.
    pub(crate) fn check(&self) -> Operation {
        Operation::Check {
            path: self.path.to_string(),
            version: None,
        }
    }

    /// Deletes the znode, and repeats the deletion until the server answers or the session ends.
    ///
    /// Succeeds if the znode is not there. Sends one request, or a share of one if many znodes are
    /// deleted at once. If other clients use the name, each repetition sends one read more. So does
    /// a call after a deletion that was dropped half-way.
    pub(crate) async fn remove(&self, live: &Arc<LiveSession>) -> Result<(), ServerError> {
        match &self.sought {
            Some(sought) => return withdraw(live, &sought.0, &sought.1).await,
            None => match &self.shared_name {
                Some(name) => {
                    let (node, live) = (self.clone(), live.clone());
                    let deletion = || async move { node.delete(&live).await }.boxed();
                    name.deleting.join(deletion).await?;
                }
                None => self.delete(live).await?,
            },
        }
        if let Some(WhenGone(call)) = &self.when_gone {
            call();
        }
        Ok(())
    }

    async fn delete(&self, live: &Arc<LiveSession>) -> Result<(), ServerError> {
        let server = &*live.server()?;
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        let mut marked = self
            .marked_release
            .as_ref()
            .is_some_and(|marked| marked.load(Ordering::Relaxed));
        if self.shared_name.is_some() {
            // Sent later, such a write would be done under the next holder's znode.
            live.own_znodes().writes().until_sent(&self.path).await;
        }
        loop {
            if self.shared_name.is_some() {
                // Without this proof a request still under way on the old connection could delete
                // the next holder's znode.
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
                // A session that may not write to the znode may still delete it.
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

    /// Deletes the znode if the znode found by the shared name is this one.
    async fn delete_by_shared_name(
        &self,
        server: &dyn ServerSession,
        name: &SharedName,
    ) -> Result<(), ServerError> {
        let doubtful = name.doubtful.swap(true, Ordering::Relaxed);
        if doubtful && !self.stands(server).await? {
            return Ok(());
        }
        server.delete(&self.path).await
    }

    /// True if the znode found by the shared name is this one.
    ///
    /// The server has applied the write that proved the connection. So it has also applied every
    /// request that the session sent over an earlier connection, or never will.
    async fn stands(&self, server: &dyn ServerSession) -> Result<bool, ServerError> {
        let (data, _) = server.get(&self.path).await?;
        Ok(self.is(&data))
    }
}

/// Repeats a deletion, with a growing pause, as long as the server refuses it.
///
/// The server may accept a later deletion. `kept_open` keeps the session open until the deletion
/// succeeds or is refused once. After a refusal the session may close, and its end deletes the
/// znode.
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
            tracing::warn!(path, %refusal, "the server refuses a deletion, which is repeated");
        }
        backoff.wait().await;
    }
}

/// Deletes the znode of this identity if it was created.
async fn withdraw(
    live: &Arc<LiveSession>,
    directory: &NodePath,
    identity: &Identity,
) -> Result<(), ServerError> {
    // Sent after the create and in the same session, so the list shows the znode if it was created.
    for path in own_paths(live, directory.as_str(), identity).await? {
        OwnNode::unique(live, &path).delete(live).await?;
    }
    Ok(())
}
