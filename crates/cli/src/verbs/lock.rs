//! `zkr lock`: a command under a lock.

use std::time::Duration;

use clap::Args;
use zookeeper_recipes_core::{AfterSessionLoss, Session};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};
use zookeeper_recipes_rwlock::{RwLock, RwLockOptions};

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run::{TaskArguments, UnderHold, WaitArguments};

/// Run a command while a lock is held.
///
/// Without --shared and --write, the lock is exclusive: also for Curator's InterProcessMutex,
/// kazoo's Lock and zookeeper-recipes' ExclusiveLock at the same path. With --shared or --write, it
/// is a read/write lock: also for Curator's InterProcessReadWriteLock, kazoo's ReadLock and
/// WriteLock, and zookeeper-recipes' RwLock. Use a path for one of the two kinds only.
///
/// The command finds ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. If the lock is
/// being lost, zkr stops the command and its children before another process can hold.
#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// The directory of the lock, such as /locks/report.
    path: String,

    /// Hold a read/write lock as a reader, together with other readers.
    #[arg(short = 's', long, conflicts_with = "write")]
    shared: bool,

    /// Hold a read/write lock as its writer, alone.
    #[arg(long)]
    write: bool,

    /// Keep the lock for at least this time, even if the command ends sooner.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    at_least: Option<Duration>,

    #[command(flatten)]
    wait: WaitArguments,

    #[command(flatten)]
    task: TaskArguments,
}

impl Lock {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let under_hold = UnderHold {
            connection,
            wait: &self.wait,
            task: &self.task,
            at_least: self.at_least,
        };
        // A zkr that waits for hours continues to wait when its session expires.
        let anew = AfterSessionLoss::Requeue;
        if !self.shared && !self.write {
            let make = async |session: &Session| {
                let mut options = LockOptions::new().after_session_loss(anew);
                if let Some(limit) = self.task.max_hold {
                    options = options.max_hold(limit);
                }
                Ok(ExclusiveLock::with_options(session, &self.path, options)?)
            };
            return under_hold.run(make).await;
        }
        let make = |session: &Session| {
            let mut options = RwLockOptions::new().after_session_loss(anew);
            if let Some(limit) = self.task.max_hold {
                options = options.max_hold(limit);
            }
            RwLock::with_options(session, &self.path, options)
        };
        if self.shared {
            under_hold
                .run(async |session: &Session| Ok(make(session)?.read().clone()))
                .await
        } else {
            under_hold
                .run(async |session: &Session| Ok(make(session)?.write().clone()))
                .await
        }
    }
}
