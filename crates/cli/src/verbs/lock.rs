//! `zkr lock`: a command under a lock.

use std::time::Duration;

use clap::Args;
use zookeeper_recipes_core::AfterSessionLoss;
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};
use zookeeper_recipes_rwlock::{RwLock, RwLockOptions};

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run::{Once, TaskArguments, WaitArguments};

/// Run a command while a lock is held.
///
/// Without --shared and --write it is an exclusive lock, which Curator's InterProcessMutex, kazoo's
/// Lock and zookeeper-recipes' ExclusiveLock exclude. With one of them it is a read/write lock, of
/// Curator's InterProcessReadWriteLock, kazoo's ReadLock and WriteLock, and RwLock. One path is for
/// one of the two kinds.
///
/// The command finds ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. If the lock is
/// being lost, the command and its children are stopped before another process can hold.
#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// The directory of the lock, such as /locks/report.
    path: String,

    /// Hold together with others that say --shared: the reader's side of a read/write lock.
    #[arg(short = 's', long, conflicts_with = "write")]
    shared: bool,

    /// Exclude those that say --shared, too: the writer's side of a read/write lock.
    #[arg(long)]
    write: bool,

    /// Keep the lock at least so long, even if the command is done sooner.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    at_least: Option<Duration>,

    #[command(flatten)]
    wait: WaitArguments,

    #[command(flatten)]
    task: TaskArguments,
}

impl Lock {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let once = Once {
            connection,
            wait: &self.wait,
            task: &self.task,
            at_least: self.at_least,
        };
        // A zkr that waits for hours goes on waiting when its session expires.
        let anew = AfterSessionLoss::QueueAnew;
        if !self.shared && !self.write {
            let make = |session: &_| {
                let options = LockOptions::new().after_session_loss(anew);
                ExclusiveLock::with_options(session, &self.path, options)
            };
            return once.run(make).await;
        }
        let make = |session: &_| {
            let options = RwLockOptions::new().after_session_loss(anew);
            RwLock::with_options(session, &self.path, options)
        };
        if self.shared {
            once.run(|session| Ok(make(session)?.read().clone())).await
        } else {
            once.run(|session| Ok(make(session)?.write().clone())).await
        }
    }
}
