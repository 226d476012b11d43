//! A lock that each call takes from a pool of locks.

use zookeeper_recipes_core::{
    Hold, InvalidInput, NodePath, QueueEntry, Recipe, RecipeFuture, Session,
};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions, Locks};

/// More names than the pool keeps without a look for idle locks.
const OTHERS: usize = 80;

/// A lock that each call takes from a pool anew, after the pool has had reason to forget it.
#[derive(Debug)]
pub(crate) struct PooledLock {
    locks: Locks,
    /// The same lock beside the pool, which would otherwise be in use for ever.
    same: ExclusiveLock,
}

impl PooledLock {
    pub(crate) fn new(
        session: &Session,
        path: &str,
        options: LockOptions,
    ) -> Result<PooledLock, InvalidInput> {
        let (parent, _) = path.rsplit_once('/').unwrap_or_default();
        Ok(PooledLock {
            same: ExclusiveLock::with_options(session, path, options.clone())?,
            locks: Locks::with_options(session, parent, options)?,
        })
    }

    fn taken(&self) -> ExclusiveLock {
        for other in 0..OTHERS {
            let other = self.locks.lock(format!("other-{other}"));
            drop(other.expect("a good name"));
        }
        let taken = self.locks.lock(self.same.path().name());
        taken.expect("the name is that of a path")
    }
}

impl Recipe for PooledLock {
    fn acquire(&self) -> RecipeFuture<'_, Hold> {
        let lock = self.taken();
        Box::pin(async move { lock.acquire().await })
    }

    fn try_acquire(&self) -> RecipeFuture<'_, Option<Hold>> {
        let lock = self.taken();
        Box::pin(async move { lock.try_acquire().await })
    }

    fn contenders(&self) -> RecipeFuture<'_, Vec<QueueEntry>> {
        let lock = self.taken();
        Box::pin(async move { lock.contenders().await })
    }

    fn path(&self) -> &NodePath {
        self.same.path()
    }

    fn session(&self) -> &Session {
        Recipe::session(&self.same)
    }
}
