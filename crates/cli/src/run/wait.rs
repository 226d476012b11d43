//! Waiting for a hold, for as long as the user wants to.

use std::time::{Duration, Instant};

use clap::Args;
use zookeeper_recipes_core::{Error, Hold, Recipe};

use super::progress;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;

/// How long to wait.
#[derive(Clone, Debug, Args)]
pub(crate) struct WaitArguments {
    /// Do not wait: fail if another contender holds.
    #[arg(
        short = 'n',
        long = "try",
        alias = "nonblock",
        conflicts_with = "timeout"
    )]
    tries: bool,

    /// Fail if it is not acquired within this time, which includes the time to connect.
    ///
    /// 0 tries once, with the exit code of --timeout.
    #[arg(short = 'w', long, alias = "wait", value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Report every minute which contender zkr is waiting for.
    ///
    /// On a terminal, zkr reports it once without this option, after two seconds.
    #[arg(short, long)]
    verbose: bool,

    /// The owner that the queue shows; by default the name of the command.
    #[arg(long, value_name = "WORDS")]
    owner: Option<String>,

    /// The exit code if --try or --timeout fails, or if once finds its slot taken.
    #[arg(short = 'E', long, value_name = "CODE")]
    conflict_exit_code: Option<u8>,
}

impl WaitArguments {
    /// Waits for a hold, or tries. `began` is when the time to wait began.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no znode remains.
    pub(super) async fn acquire(
        &self,
        recipe: &dyn Recipe,
        began: Instant,
        answers_within: Duration,
    ) -> Result<Hold, Failure> {
        if self.tries || self.timeout == Some(Duration::ZERO) {
            return self.try_once(recipe, answers_within).await;
        }
        tokio::select! {
            biased;
            hold = self.wait(recipe, began) => hold,
            never = progress::report(recipe, self.verbose) => match never {},
        }
    }

    async fn try_once(
        &self,
        recipe: &dyn Recipe,
        answers_within: Duration,
    ) -> Result<Hold, Failure> {
        let tried = tokio::time::timeout(answers_within, recipe.try_acquire()).await;
        let tried = tried.map_err(|_| {
            let problem = "no server has answered; check --connect and the servers";
            Failure::new(Exit::Unavailable, format!("{}: {problem}", recipe.path()))
        })?;
        tried?.ok_or_else(|| {
            let exit = match self.tries {
                true => Exit::Conflict,
                false => Exit::TimedOut,
            };
            let text = format!("{}: another contender holds", recipe.path());
            Failure::new(self.conflict(exit), text)
        })
    }

    async fn wait(&self, recipe: &dyn Recipe, began: Instant) -> Result<Hold, Failure> {
        let Some(timeout) = self.timeout else {
            return Ok(recipe.acquire().await?);
        };
        let left = timeout.saturating_sub(began.elapsed());
        recipe
            .acquire_timeout(left)
            .await
            .map_err(|error| match error {
                Error::DeadlineElapsed { path, .. } => {
                    let text = format!("{path}: not held within {timeout:?}");
                    Failure::new(self.conflict(Exit::TimedOut), text)
                }
                error => error.into(),
            })
    }

    /// The most time to connect, if there is a limit. One try has the usual one.
    pub(super) fn connects_within(&self) -> Option<Duration> {
        self.timeout.filter(|timeout| !timeout.is_zero())
    }

    pub(super) fn owner(&self) -> Option<String> {
        self.owner.clone()
    }

    /// True if the user wants to know what happens.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// The exit code of a conflict that has another one otherwise.
    pub(crate) fn conflict(&self, otherwise: Exit) -> Exit {
        self.conflict_exit_code.map_or(otherwise, Exit::Code)
    }
}
