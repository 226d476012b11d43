//! `zkr once`: a command that one process of a fleet runs in each time slot.

use std::time::Duration;

use clap::{Args, ValueEnum};
use zookeeper_recipes_core::{AfterSessionLoss, Session};
use zookeeper_recipes_lock::{self as lock, LockOptions, OncePerSlot, OncePerSlotOptions};

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run::{TaskArguments, UnderHold, WaitArguments};

/// Run a command at most once in each time slot, over all machines.
///
/// Start it on each machine by a timer, such as cron. The first one runs the command. The others
/// end with code 0 and run nothing, also if the first one finished quickly and if their clocks
/// differ. The code of the command says whether it has failed.
///
/// The command finds ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. If the lock of
/// the slot is being lost, zkr stops the command and its children before another process can hold.
#[derive(Debug, Args)]
pub(crate) struct Once {
    /// The directory of the job, such as /jobs/report. Use it for no other recipe.
    path: String,

    /// The length of a slot, such as 1d. Slots begin at midnight of UTC.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    every: Duration,

    /// How long after midnight of UTC a slot begins. The same on all machines.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "0s")]
    offset: Duration,

    /// Whether the command may run again in the same slot.
    #[arg(long, value_enum, default_value_t = Again::Never)]
    again: Again,

    #[command(flatten)]
    wait: WaitArguments,

    #[command(flatten)]
    task: TaskArguments,
}

/// Whether the command may run again in the same slot.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Again {
    /// A command that has begun is not run again.
    Never,
    /// It runs again after it has ended with another code than 0.
    AfterFailure,
    /// It runs again also after its machine has died or has lost the lock.
    UnlessDone,
}

impl Once {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let under_hold = UnderHold {
            connection,
            wait: &self.wait,
            task: &self.task,
            at_least: None,
        };
        under_hold.run_in_slot(|session| self.make(session)).await
    }

    fn make(&self, session: &Session) -> Result<OncePerSlot, zookeeper_recipes_core::InvalidInput> {
        let mut lock = LockOptions::new().after_session_loss(AfterSessionLoss::QueueAnew);
        if let Some(limit) = self.task.at_most {
            lock = lock.at_most(limit);
        }
        let again = match self.again {
            Again::Never => lock::Again::Never,
            Again::AfterFailure => lock::Again::AfterFailure,
            Again::UnlessDone => lock::Again::UnlessDone,
        };
        let options = OncePerSlotOptions::new().lock(lock);
        let options = options.offset(self.offset).again(again);
        OncePerSlot::with_options(session, &self.path, self.every, options)
    }
}
