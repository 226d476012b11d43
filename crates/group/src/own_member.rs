//! The znode of a member of this process: one attempt to create it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use zookeeper_recipes_core::{
    Backoff, Error, Hold, NamedZnode, NodePath, Refusal, ServerError, Session, Stat,
};

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

impl OwnMember {
    /// Creates the znode, and holds by it.
    pub(crate) async fn join(&self, if_taken: IfTaken) -> Result<Hold, Error> {
        let GroupOptions { directories, acl } = &self.options;
        let mut lapsed = Backoff::default();
        loop {
            let last = self.last.load(Ordering::Relaxed);
            let created = Arc::new(AtomicI64::new(0));
            let own = created.clone();
            let is_own = move |_: &[u8], stat: &Stat| match own.load(Ordering::Relaxed) {
                0 => stat.czxid > last,
                created => stat.czxid == created,
            };
            let znode = NamedZnode::begin(&self.session, &self.path, is_own).await?;
            let stat = match if_taken {
                IfTaken::Wait => znode.create_or_wait(&self.data, acl, *directories).await?,
                IfTaken::Refuse => {
                    let created = znode.create(&self.data, acl, *directories).await?;
                    let taken = ServerError::Refused(Refusal::NodeExists);
                    created.ok_or_else(|| znode.failed(taken))?
                }
            };
            created.store(stat.czxid, Ordering::Relaxed);
            self.last.store(stat.czxid, Ordering::Relaxed);
            match znode.hold("group", &Arc::default(), &stat, None).await? {
                Some(hold) => return Ok(hold),
                // The lease has lapsed in this moment, and the znode is deleted.
                None => lapsed.wait().await,
            }
        }
    }
}
