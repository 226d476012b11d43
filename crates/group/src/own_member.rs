//! The znode of a member of this process: one attempt to create it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::FutureExt;
use zookeeper_recipes_core::ensemble::{Reply, ServerSession};
use zookeeper_recipes_core::{
    Error, Hold, NodePath, OwnedZnode, Refusal, Removal, ServerError, Session, SessionId, Stat,
};

use crate::backoff::Backoff;
use crate::options::GroupOptions;

/// What a member is created with.
#[derive(Clone, Debug)]
pub(crate) struct OwnMember {
    pub(crate) session: Session,
    pub(crate) path: NodePath,
    pub(crate) data: Arc<[u8]>,
    pub(crate) options: GroupOptions,
    /// The transaction that created the last znode of this member. 0 before the first.
    ///
    /// If the lease lapses and the session lives, that znode exists until it is deleted in the
    /// background. Its session is that of the next znode, so only this number distinguishes them.
    pub(crate) last: Arc<AtomicI64>,
}

/// What an attempt does while another member has the name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfTaken {
    Wait,
    Refuse,
}

/// The znode of one attempt, and of its hold.
#[derive(Debug)]
struct OwnName {
    path: NodePath,
    /// The member's last znode before this one.
    after: i64,
    /// The transaction that created this znode. 0 if it is not known.
    created: AtomicI64,
}

impl OwnName {
    /// True if a znode with this metadata is this one.
    fn is(&self, stat: &Stat, session: SessionId) -> bool {
        let created = match self.created.load(Ordering::Relaxed) {
            0 => stat.czxid > self.after,
            created => stat.czxid == created,
        };
        created && SessionId(stat.ephemeral_owner) == session
    }
}

impl Removal for OwnName {
    fn path(&self) -> &str {
        self.path.as_str()
    }

    fn remove<'a>(&'a self, server: &'a dyn ServerSession, is_held: bool) -> Reply<'a, ()> {
        let removed = async move {
            if !is_held {
                // An earlier create or deletion may be under way over an earlier connection. Once
                // a write is committed over this one, the server has applied it or will refuse it.
                server.prove().await?;
                let (_, stat) = server.get(self.path.as_str()).await?;
                if !self.is(&stat, server.id()) {
                    return Ok(());
                }
            }
            server.delete(self.path.as_str()).await
        };
        removed.boxed()
    }
}

impl OwnMember {
    /// Creates the znode, and holds by it.
    pub(crate) async fn join(&self, if_taken: IfTaken) -> Result<Hold, Error> {
        let mut lapsed = Backoff::new();
        loop {
            let own = Arc::new(OwnName {
                path: self.path.clone(),
                after: self.last.load(Ordering::Relaxed),
                created: AtomicI64::new(0),
            });
            let znode = OwnedZnode::begin(&self.session, own.clone()).await?;
            let created = znode.during(self.create(&znode, &own, if_taken)).await?;
            own.created.store(created.czxid, Ordering::Relaxed);
            self.last.store(created.czxid, Ordering::Relaxed);
            // The connection may have broken since the create, and is not proven then.
            let may_hold = async {
                let may_hold = znode.until_may_hold().await;
                may_hold.map_err(|error| znode.failed(error))
            };
            znode.during(pin!(may_hold)).await?;
            match znode.hold("group", &Arc::default(), &created, None)? {
                Some(hold) => return Ok(hold),
                // The lease has lapsed in this moment, and the znode is deleted.
                None => lapsed.wait().await,
            }
        }
    }

    async fn create(
        &self,
        znode: &OwnedZnode,
        own: &OwnName,
        if_taken: IfTaken,
    ) -> Result<Stat, Error> {
        let mut backoff = Backoff::new();
        loop {
            let may_hold = znode.until_may_hold().await;
            may_hold.map_err(|error| znode.failed(error))?;
            match znode.create(&self.data, &self.options.acl).await {
                Ok(created) => return Ok(created.stat),
                Err(error) if error.is(Refusal::NoNode) => {
                    znode.refused();
                    self.create_directory(znode).await?;
                }
                Err(ServerError::OutcomeUnknown(_)) => match self.find_own(znode, own).await? {
                    Some(stat) => return Ok(stat),
                    None => znode.before_another_create().await?,
                },
                Err(error) => {
                    znode.refused();
                    if !error.is(Refusal::NodeExists) || if_taken == IfTaken::Refuse {
                        return Err(znode.failed(error));
                    }
                    match znode.server().get_and_watch(self.path.as_str()).await {
                        Ok((_, _, watch)) => {
                            znode.waits(watch).await;
                            continue;
                        }
                        Err(ServerError::OutcomeUnknown(_)) => {}
                        Err(error) if error.is(Refusal::NoNode) => {}
                        Err(error) => return Err(znode.failed(error)),
                    }
                }
            }
            backoff.wait().await;
        }
    }

    async fn create_directory(&self, znode: &OwnedZnode) -> Result<(), Error> {
        let GroupOptions { directories, acl } = &self.options;
        match self.path.parent() {
            Some(parent) => znode.create_directory(&parent, *directories, acl).await,
            None => Ok(()),
        }
    }

    /// Finds the znode of a create without an answer. `None` if it was not applied.
    async fn find_own(&self, znode: &OwnedZnode, own: &OwnName) -> Result<Option<Stat>, Error> {
        let (server, mut backoff) = (znode.server(), Backoff::new());
        loop {
            let found = async {
                // The server has applied the create by the answer, or never will.
                server.prove().await?;
                server.get(self.path.as_str()).await
            };
            match found.await {
                Ok((_, stat)) => return Ok(own.is(&stat, server.id()).then_some(stat)),
                Err(error) if error.is(Refusal::NoNode) => return Ok(None),
                Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                Err(error) => return Err(znode.failed(error)),
            }
        }
    }
}
