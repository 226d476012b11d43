//! One's own znode, and how to be rid of it for certain.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::alone::{Alone, LastAlone};
use crate::announcement;
use crate::backoff::Backoff;
use crate::deletions;
use crate::ensemble::{ServerSession, SessionId, Stat};
use crate::error::{Refusal, ServerError};
use crate::live::LiveSession;

/// A znode that this process created in a session.
#[derive(Clone, Debug)]
pub(crate) struct OwnNode {
    path: Arc<str>,
    shared_name: Option<SharedName>,
    /// Where nobody but its owner can write to it: whether its deletion is announced as a release.
    /// The clones share it.
    announcement: Option<Arc<AtomicBool>>,
    /// Where its contender was alone in the queue: who is to know when it has gone.
    last_alone: Option<(LastAlone, Alone)>,
}

/// Where others create a znode of the same name, so that it must be looked at to tell whose it is.
#[derive(Clone, Debug)]
struct SharedName {
    owner: SessionId,
    identity: Arc<[u8]>,
    /// By which transaction it was created, once that is known.
    czxid: Option<i64>,
    /// Whether it is not known that the znode is there: not that it was created, or not that it
    /// has not been deleted since. The clones share it.
    doubtful: Arc<AtomicBool>,
}

impl OwnNode {
    /// A znode whose name nobody else uses.
    pub(crate) fn unique(path: String) -> OwnNode {
        OwnNode {
            path: path.into(),
            shared_name: None,
            announcement: None,
            last_alone: None,
        }
    }

    /// The same, held alone, to which nobody else can write, so that its deletion can say that it is
    /// the release of a holder: from the beginning where `announced`, else from
    /// [`announce`](Self::announce) on.
    pub(crate) fn written_by_owner_alone(mut self, announced: bool) -> OwnNode {
        self.announcement = Some(Arc::new(AtomicBool::new(announced)));
        self
    }

    /// The same, of a contender that is alone in its queue.
    pub(crate) fn alone(mut self, last: LastAlone, alone: Alone) -> OwnNode {
        self.last_alone = Some((last, alone));
        self
    }

    /// Has its deletion announced from here on, if it can be.
    pub(crate) fn announce(&self) {
        if let Some(announced) = &self.announcement {
            announced.store(true, Ordering::Relaxed);
        }
    }

    /// A znode that others create by the same name, told apart by the data it begins with, and of
    /// which it is not known whether it was created.
    pub(crate) fn doubtful(path: &str, owner: SessionId, identity: &[u8]) -> OwnNode {
        let shared_name = SharedName {
            owner,
            identity: identity.into(),
            czxid: None,
            doubtful: Arc::new(AtomicBool::new(true)),
        };
        OwnNode {
            path: path.into(),
            shared_name: Some(shared_name),
            announcement: None,
            last_alone: None,
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

    /// Whether a znode found by this name is this one.
    pub(crate) fn is(&self, data: &[u8], stat: &Stat) -> bool {
        self.shared_name.as_ref().is_none_or(|name| {
            stat.ephemeral_owner == name.owner.0 && data.starts_with(&name.identity)
        })
    }

    /// Whether a znode found by this name is this one, whatever was written to it since.
    pub(crate) fn is_still(&self, stat: &Stat) -> bool {
        let is_other = |czxid| czxid != stat.czxid;
        let name = self.shared_name.as_ref();
        !name.and_then(|name| name.czxid).is_some_and(is_other)
    }

    /// Whether nobody but its owner should ever write to it.
    pub(crate) fn is_written_by_owner_alone(&self) -> bool {
        self.announcement.is_some()
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Deletes the znode, again and again while the outcome is unknown, until the server's word or
    /// the session's end. That it is not there is success.
    ///
    /// Costs one request, or a share of one where many znodes are deleted at once; plus two before
    /// each repetition where the name is shared, also of one that was dropped half-way.
    pub(crate) async fn remove(&self, live: &Arc<LiveSession>) -> Result<(), ServerError> {
        self.delete(live).await?;
        if let Some((last, alone)) = &self.last_alone {
            last.has_gone(*alone);
        }
        Ok(())
    }

    async fn delete(&self, live: &Arc<LiveSession>) -> Result<(), ServerError> {
        let server = &*live.server()?;
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        let mut announced = self
            .announcement
            .as_ref()
            .is_some_and(|announced| announced.load(Ordering::Relaxed));
        loop {
            let doubtful = self
                .shared_name
                .as_ref()
                .is_some_and(|name| name.doubtful.swap(true, Ordering::Relaxed));
            let result = match doubtful {
                true => self.remove_if_own(server).await,
                false if announced => announcement::release(server, &self.path).await,
                // Sent twice, it might be another's that is deleted.
                false if self.shared_name.is_some() => server.delete(&self.path).await,
                false => deletions::delete(live, server, &self.path).await,
            };
            match result {
                Ok(()) => return Ok(()),
                Err(error) if error.is(Refusal::NoNode) => return Ok(()),
                // Whoever may not write may yet delete.
                Err(ServerError::Refused(refusal))
                    if announced && refusal != Refusal::Throttled =>
                {
                    announced = false;
                }
                Err(ServerError::OutcomeUnknown(_) | ServerError::Refused(Refusal::Throttled)) => {
                    backoff.wait().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn remove_if_own(&self, server: &dyn ServerSession) -> Result<(), ServerError> {
        let synced = server.sync(&self.path);
        let found = server.get(&self.path);
        synced.await?;
        let (data, stat) = found.await?;
        if self.is(&data, &stat) {
            server.delete(&self.path).await
        } else {
            Ok(())
        }
    }
}
