//! Waiting for a hold, for as long as the user wants to.

use std::time::{Duration, Instant};

use clap::Args;
use zookeeper_recipes_core::{Error, Hold, Recipe};

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

    /// Fail if the hold is not acquired within this time, which includes the time to connect.
    #[arg(short = 'w', long, alias = "wait", value_name = "DURATION", value_parser = duration::parse)]
    pub(super) timeout: Option<Duration>,

    /// The exit code if --try or --timeout fails.
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
        if self.tries {
            let tried = tokio::time::timeout(answers_within, recipe.try_acquire()).await;
            let tried = tried.map_err(|_| {
                let problem = "no server has answered; check --connect and the servers";
                Failure::new(Exit::Unavailable, format!("{}: {problem}", recipe.path()))
            })?;
            return tried?.ok_or_else(|| {
                let text = format!("{}: another contender holds", recipe.path());
                Failure::new(self.conflict(Exit::Conflict), text)
            });
        }
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

    fn conflict(&self, otherwise: Exit) -> Exit {
        self.conflict_exit_code.map_or(otherwise, Exit::Code)
    }
}
