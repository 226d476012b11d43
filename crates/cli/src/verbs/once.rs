//! `zkr once`: a command that at most one process of a fleet runs in each time slot.

use std::time::Duration;

use clap::{Args, ValueEnum};
use zookeeper_recipes_core::{AfterSessionLoss, Session};
use zookeeper_recipes_lock::{
    self as lock, LockOptions, OncePerSlot, OncePerSlotOptions, SlotRecord, SlotState,
};

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::{Failure, say};
use crate::queue::slot_text;
use crate::run::{TaskArguments, UnderHold, WaitArguments};

/// Run a command at most once per time slot, across all machines.
///
/// Start it on every machine from a timer, such as cron. The first machine runs the command, and
/// exits with the command's code. The others run nothing and exit with code 0, even if the first run
/// was quick or the clocks differ slightly.
///
/// At most once is not exactly once: if the machine dies while the command runs, no other machine
/// runs it in that slot, unless --again allows it. --if-unfinished-exit lets the others report that,
/// and --verbose prints which machine runs or ran the command. If the command cannot be started, or
/// zkr ends before starting it, the slot stays free.
///
/// The command gets ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. If the slot's lock is
/// about to be lost, zkr stops the command and its children before another process can acquire it.
#[derive(Debug, Args)]
pub(crate) struct Once {
    /// The directory of the job, such as /jobs/report. Use it for no other recipe.
    path: String,

    /// The length of a slot: a divisor of a day, such as 15m or 6h, or whole days.
    ///
    /// Slots begin at midnight UTC, and slots of whole weeks on Mondays. The first run records the
    /// length and the offset. Later runs with other values are refused.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    every: Duration,

    /// How long after midnight UTC, or Monday, a slot begins. Use the same on all machines.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "0s")]
    offset: Duration,

    /// Whether the command may run again in the same slot.
    #[arg(long, value_enum, default_value_t = Again::Never)]
    again: Again,

    /// The exit code if the slot is taken, and its command has not succeeded.
    ///
    /// The command is still running, it failed, or its machine died.
    #[arg(long, value_name = "CODE")]
    if_unfinished_exit: Option<u8>,

    /// How much the clock of this machine may differ from that of the servers.
    ///
    /// A machine with a wrong clock would take slots meant for others. Beyond this difference it
    /// runs nothing, and exits with code 70.
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
    /// Never, once the command has begun.
    Never,
    /// If the command ended with a nonzero code.
    AfterFailure,
    /// Also if the machine died or lost the lock while the command ran.
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
            say(&format!("{}: {text}", job.path()));
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
