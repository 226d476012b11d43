//! One acquisition, one run of the command, one release.

use std::future::{pending, ready};
use std::time::{Duration, Instant};

use clap::Args;
use zookeeper_recipes_core::{Ended, Hold, HoldView, LossReason, Recipe, Session};

use super::signals::Signals;
use super::supervise::{Ending, supervise};
use super::task::{Task, TaskArguments};
use super::wait::WaitArguments;
use crate::connecting::{Connection, close};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;

/// How long to wait and to hold, and what to run.
#[derive(Debug, Args)]
pub(crate) struct HoldArguments {
    /// Hold for at least this long, even if the command ends sooner.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    at_least: Option<Duration>,

    #[command(flatten)]
    wait: WaitArguments,

    #[command(flatten)]
    pub(crate) task: TaskArguments,
}

impl HoldArguments {
    /// What runs over this connection.
    pub(crate) fn under_hold<'a>(&'a self, connection: &'a Connection) -> UnderHold<'a> {
        UnderHold {
            connection,
            wait: &self.wait,
            task: &self.task,
            at_least: self.at_least,
        }
    }
}

/// What to acquire, for how long to wait, and what to run.
pub(crate) struct UnderHold<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) wait: &'a WaitArguments,
    pub(crate) task: &'a TaskArguments,
    pub(crate) at_least: Option<Duration>,
}

impl UnderHold<'_> {
    /// Acquires the recipe, runs the command while it is held, and releases.
    pub(crate) async fn run(
        &self,
        make: impl AsyncFnOnce(&Session) -> Result<Box<dyn Recipe>, Failure>,
    ) -> Result<Exit, Failure> {
        let began = Instant::now();
        self.in_session(async |session, signals| {
            let recipe = tokio::select! {
                biased;
                signal = signals.end() => return Ok(Exit::Signal(signal)),
                recipe = make(session) => recipe?,
            };
            self.under_hold(session, &*recipe, began, signals).await
        })
        .await
    }

    /// Opens a session, does the work, and closes the session.
    pub(super) async fn in_session(
        &self,
        work: impl AsyncFnOnce(&Session, &mut Signals) -> Result<Exit, Failure>,
    ) -> Result<Exit, Failure> {
        self.task.look_at_command()?;
        let mut signals = heard()?;
        let owner = self.wait.owner().unwrap_or_else(|| self.task.owner());
        let session = tokio::select! {
            biased;
            signal = signals.end() => return Ok(Exit::Signal(signal)),
            session = self.connection.open_for(owner, self.wait.connects_within(), false) => session?,
        };
        let result = work(&session, &mut signals).await;
        close(session).await;
        result
    }

    async fn under_hold(
        &self,
        session: &Session,
        recipe: &dyn Recipe,
        began: Instant,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let task = self.task.in_session(self.connection, session)?;
        let answers_within = session.timeout().unwrap_or_default();
        let hold = tokio::select! {
            biased;
            signal = signals.end() => return Ok(Exit::Signal(signal)),
            hold = self.wait.acquire(recipe, began, answers_within) => hold?,
        };
        let path = recipe.path().as_str();
        let view = hold.view();
        let ended = supervise(&view, ready(Ok(())), pending(), &task, path, signals).await;
        match ended {
            Ok(Ending::ByItself(exit)) => {
                self.keep(&hold, signals).await;
                release(hold).await;
                Ok(exit)
            }
            Ok(Ending::NotBegun(why)) => {
                release(hold).await;
                why
            }
            // Nobody asks for it before it is lost.
            Ok(Ending::Asked | Ending::Lost) => Err(lost(path, &view, &task).await),
            Err(failure) => {
                release(hold).await;
                Err(failure)
            }
        }
    }

    /// Keeps the hold as long as `--at-least` says, unless it is lost or a signal comes.
    async fn keep(&self, hold: &Hold, signals: &mut Signals) {
        let Some(at_least) = self.at_least else {
            return;
        };
        let left = at_least.saturating_sub(hold.acquired_at().elapsed());
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            _ = hold.lost() => {}
            _ = signals.end() => {}
        }
    }
}

pub(super) fn heard() -> Result<Signals, Failure> {
    Signals::new().map_err(|error| Failure::internal("cannot receive signals", error))
}

/// Releases, and says so if that fails. The code of the command counts all the same.
pub(super) async fn release(hold: Hold) {
    if let Err(error) = hold.release().await {
        Failure::from(error).print();
    }
}

/// The failure of a command whose hold was lost, or was about to be.
pub(super) async fn lost(path: &str, hold: &HoldView, task: &Task) -> Failure {
    // The guard stops the command this long before the hold is lost.
    let held = hold.acquired_at().elapsed() + task.grace;
    let ended = match hold.is_held() {
        true => None,
        false => Some(hold.ended().await),
    };
    let reason = match (ended, task.max_hold) {
        (None | Some(Ended::Lost(LossReason::TimeLimit)), Some(max_hold)) if held >= max_hold => {
            format!("the command ran for as long as --max-hold {max_hold:?} allows")
        }
        (Some(ended), _) => ended.to_string(),
        (None, _) => "the servers did not answer in time".to_owned(),
    };
    Failure::new(
        Exit::Lost,
        format!("{path}: {reason}; the command was stopped"),
    )
}
