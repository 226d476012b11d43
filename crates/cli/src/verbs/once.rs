//! `zkr once`: a command that at most one process of a fleet runs in each time slot.

use std::io::{Write, stderr};
use std::time::Duration;

use clap::{Args, ValueEnum};
use zookeeper_recipes_core::{AfterSessionLoss, Session};
use zookeeper_recipes_lock::{
    self as lock, LockOptions, OncePerSlot, OncePerSlotOptions, SlotRecord, SlotState,
};

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plain_text::plain;
use crate::queue::slot_text;
use crate::run::{TaskArguments, UnderHold, WaitArguments};

/// Run a command at most once in each time slot, over all machines.
///
/// Start it on each machine by a timer, such as cron. The first one runs the command. The others
/// end with code 0 and run nothing, also if the first one finished quickly and if their clocks
/// differ a little. The code of the command says whether it has failed.
///
/// At most once is not exactly once: if the machine dies in the middle of the command, no other machine
/// runs it in that slot, unless --again says so. --if-unfinished-exit tells the others, and
/// --verbose prints which machine runs or ran the command. A command that cannot be started, or a
/// zkr that ends before it starts the command, takes no slot.
///
/// The command finds ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. If the lock of
/// the slot is being lost, zkr stops the command and its children before another process can hold.
#[derive(Debug, Args)]
pub(crate) struct Once {
    /// The directory of the job, such as /jobs/report. Use it for no other recipe.
    path: String,

    /// The length of a slot: a divisor of a day, such as 15m or 6h, or whole days.
    ///
    /// Slots begin at midnight of UTC, and those of whole weeks on Mondays. The first run records
    /// the length and the offset. Others are refused then.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    every: Duration,

    /// How long after midnight of UTC, or after Monday, a slot begins. The same on all machines.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "0s")]
    offset: Duration,

    /// Whether the command may run again in the same slot.
    #[arg(long, value_enum, default_value_t = Again::Never)]
    again: Again,

    /// The exit code if the slot is taken and its command has not ended with code 0.
    ///
    /// It runs, or it has failed, or its machine has died.
    #[arg(long, value_name = "CODE")]
    if_unfinished_exit: Option<u8>,

    /// How much the clock of this machine may differ from that of the servers.
    ///
    /// A machine whose clock is wrong would take slots that others are to run. It runs nothing, and
    /// ends with exit code 70.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "1m")]
    clock_may_differ: Duration,

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
        let taken = async |job: &OncePerSlot, run| self.taken(job, run).await;
        under_hold
            .run_in_slot(|session| self.make(session), taken)
            .await
    }

    async fn taken(&self, job: &OncePerSlot, run: SlotRecord) -> Exit {
        if self.wait.is_verbose() {
            let text = slot_text(&run, holds(job, &run).await);
            let line = plain(&format!("zkr: {}: {text}\n", job.path()));
            // No output is left for a report of an error.
            let _ = stderr().write_all(line.as_bytes());
        }
        match self.if_unfinished_exit {
            Some(code) if run.state != SlotState::Done => Exit::Code(code),
            _ => self.wait.conflict(Exit::Done),
        }
    }

    fn make(&self, session: &Session) -> Result<OncePerSlot, zookeeper_recipes_core::InvalidInput> {
        let mut lock = LockOptions::new().after_session_loss(AfterSessionLoss::Requeue);
        if let Some(limit) = self.task.max_hold {
            lock = lock.max_hold(limit);
        }
        let again = match self.again {
            Again::Never => lock::Again::Never,
            Again::AfterFailure => lock::Again::AfterFailure,
            Again::UnlessDone => lock::Again::UnlessDone,
        };
        let options = OncePerSlotOptions::new().lock(lock);
        let options = options.offset(self.offset).again(again);
        let options = options.clock_may_differ(self.clock_may_differ);
        OncePerSlot::with_options(session, &self.path, self.every, options)
    }
}

/// True if the process of this run holds the lock of the job now.
async fn holds(job: &OncePerSlot, run: &SlotRecord) -> bool {
    let is_started = run.state == SlotState::Started;
    is_started
        && job.lock().contenders().await.is_ok_and(|contenders| {
            let mut tokens = contenders.iter().map(|it| it.fencing_token);
            tokens.any(|token| token == run.fencing_token)
        })
}
