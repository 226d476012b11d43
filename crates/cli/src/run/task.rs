//! What to run under a hold, and how.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use zookeeper_recipes_core::Session;

use super::program;
use crate::connecting::Connection;
use crate::duration;
use crate::failure::Failure;

/// The command, and how it is stopped.
#[derive(Clone, Debug, Args)]
pub(crate) struct TaskArguments {
    /// If the hold is about to be lost, send SIGTERM to the command this long before SIGKILL.
    ///
    /// By default a tenth of the session timeout, or a twentieth if no more is allowed.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    grace: Option<Duration>,

    /// Stop a command that runs longer than this, as if the hold were lost.
    ///
    /// The time counts from the acquisition. The command has ended by then, and the next contender
    /// can hold.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) max_hold: Option<Duration>,

    /// Run this line with `sh`, instead of COMMAND. It can use $ZKR_FENCING_TOKEN.
    #[arg(short = 'c', value_name = "LINE", conflicts_with = "command")]
    line: Option<OsString>,

    /// The command to run, and its arguments.
    #[arg(last = true, required_unless_present = "line", value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A command to run in one session.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) command: Vec<OsString>,
    pub(super) grace: Duration,
    pub(super) max_hold: Option<Duration>,
    /// How often the deadline of the guard is extended.
    pub(super) renews_every: Duration,
}

impl TaskArguments {
    /// The program of the command, for others who look at the queue.
    pub(super) fn owner(&self) -> String {
        // More would not fit on a line.
        const LONGEST: usize = 50;
        let first = match &self.line {
            Some(line) => line.to_string_lossy(),
            None => self
                .command
                .first()
                .map(|it| it.to_string_lossy())
                .unwrap_or_default(),
        };
        let program = match self.line {
            Some(_) => first.split_whitespace().next().unwrap_or_default(),
            None => &first,
        };
        let program = Path::new(program).file_name().unwrap_or_default();
        let letters = program.to_string_lossy();
        let printable = letters.chars().filter(|letter| !letter.is_control());
        match printable.take(LONGEST).collect::<String>() {
            empty if empty.is_empty() => "zkr".to_owned(),
            program => program,
        }
    }

    fn command(&self) -> Vec<OsString> {
        match &self.line {
            Some(line) => vec!["sh".into(), "-c".into(), line.clone()],
            None => self.command.clone(),
        }
    }

    /// Refuses a command that could not be started.
    pub(super) fn refuse_missing_command(&self) -> Result<(), Failure> {
        self.file().map(drop)
    }

    /// As [`refuse_missing_command`](Self::refuse_missing_command), at the start of `zkr`: it also
    /// warns of a command that could not be stopped.
    pub(super) fn look_at_command(&self) -> Result<(), Failure> {
        program::warn_of_another_user(&self.file()?);
        Ok(())
    }

    fn file(&self) -> Result<PathBuf, Failure> {
        match self.command().first() {
            Some(program) => program::find(program),
            None => Err(Failure::usage("no command is given after --")),
        }
    }

    /// The task in a session with this timeout. A command that could not be started is refused.
    pub(super) fn in_session(
        &self,
        connection: &Connection,
        session: &Session,
    ) -> Result<Task, Failure> {
        self.refuse_missing_command()?;
        let timeout = session.timeout().unwrap_or_default();
        let longest = connection.longest_grace(timeout);
        let grace = self.grace.unwrap_or(longest.min(timeout / 10));
        if grace > longest {
            return Err(Failure::usage(format!(
                "--grace {grace:?} is too long for a session timeout of {timeout:?}, where it can \
                 be {longest:?}: shorten it, or raise --session-timeout"
            )));
        }
        if let Some(max_hold) = self.max_hold.filter(|&max_hold| max_hold <= grace) {
            return Err(Failure::usage(format!(
                "--max-hold {max_hold:?} must be longer than --grace, which is {grace:?}"
            )));
        }
        Ok(Task {
            command: self.command(),
            grace,
            max_hold: self.max_hold,
            renews_every: (timeout / 40)
                .clamp(Duration::from_millis(10), Duration::from_millis(250)),
        })
    }
}
