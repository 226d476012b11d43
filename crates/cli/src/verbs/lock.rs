//! `zkr lock`: a command under a lock.

use clap::Args;
use zookeeper_recipes_core::{AfterSessionLoss, Recipe, Session};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};
use zookeeper_recipes_rwlock::{RwLock, RwLockOptions};

use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run::HoldArguments;

/// Run a command under a lock.
///
/// By default the lock is exclusive. It also excludes Curator's InterProcessMutex, kazoo's Lock and
/// zookeeper-recipes' ExclusiveLock at the same path. With --shared or --write it is a read/write
/// lock, and works with Curator's InterProcessReadWriteLock, kazoo's ReadLock and WriteLock, and
/// zookeeper-recipes' RwLock. Do not mix the two kinds at one path.
///
/// The command gets ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. If the lock is
/// about to be lost, zkr stops the command and its children before another process can acquire it.
#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// The directory of the lock, such as /locks/report.
    path: String,

    /// Acquire a read/write lock as a reader, along with other readers.
    #[arg(short = 's', long, conflicts_with = "write")]
    shared: bool,

    /// Acquire a read/write lock as the only writer, without readers.
    #[arg(long)]
    write: bool,

    #[command(flatten)]
    hold: HoldArguments,
}

impl Lock {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let under_hold = self.hold.under_hold(connection);
        under_hold.run(async |session| self.make(session)).await
    }

    fn make(&self, session: &Session) -> Result<Box<dyn Recipe>, Failure> {
        // A zkr that waits for hours continues to wait when its session expires.
        let anew = AfterSessionLoss::Requeue;
        let limit = self.hold.task.max_hold;
        if !self.shared && !self.write {
            let mut options = LockOptions::new().after_session_loss(anew);
            if let Some(limit) = limit {
                options = options.max_hold(limit);
            }
            let lock = ExclusiveLock::with_options(session, &self.path, options)?;
            return Ok(Box::new(lock));
        }
        let mut options = RwLockOptions::new().after_session_loss(anew);
        if let Some(limit) = limit {
            options = options.max_hold(limit);
        }
        let lock = RwLock::with_options(session, &self.path, options)?;
        Ok(match self.shared {
            true => Box::new(lock.read().clone()),
            false => Box::new(lock.write().clone()),
        })
    }
}
