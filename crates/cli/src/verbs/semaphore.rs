//! `zkr semaphore`: a command under some permits of a semaphore.

use std::time::Duration;

use clap::Args;
use zookeeper_recipes_core::{AfterSessionLoss, Session};
use zookeeper_recipes_semaphore::{Semaphore as Permits, SemaphoreOptions};

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run::{TaskArguments, UnderHold, WaitArguments};

/// Run a command while permits of a semaphore are held.
///
/// The first contender records the number of permits. `zkr resize` changes it. Without --permits,
/// the recorded number counts. With another number in --permits than is recorded, the call fails.
///
/// The command finds ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. If the permits
/// are being lost, zkr stops the command and its children before another process can hold them.
#[derive(Debug, Args)]
pub(crate) struct Semaphore {
    /// The directory of the semaphore, such as /limits/exports.
    path: String,

    /// How many permits the semaphore has. By default the recorded number.
    #[arg(long, value_name = "N")]
    permits: Option<u32>,

    /// How many permits the command needs.
    #[arg(long, value_name = "W", default_value_t = 1)]
    weight: u32,

    /// Keep the permits for at least this time, even if the command ends sooner.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    at_least: Option<Duration>,

    #[command(flatten)]
    wait: WaitArguments,

    #[command(flatten)]
    task: TaskArguments,
}

impl Semaphore {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let under_hold = UnderHold {
            connection,
            wait: &self.wait,
            task: &self.task,
            at_least: self.at_least,
        };
        under_hold
            .run(async |session| self.make(session).await)
            .await
    }

    async fn make(&self, session: &Session) -> Result<Permits, Failure> {
        let mut options = SemaphoreOptions::new().after_session_loss(AfterSessionLoss::Requeue);
        if let Some(limit) = self.task.max_hold {
            options = options.max_hold(limit);
        }
        let path = &self.path;
        let semaphore = match self.permits {
            Some(permits) => Permits::with_options(session, path, permits, options)?,
            None => {
                let Some(recorded) = Permits::open(session, path, 1)?.recorded().await? else {
                    let problem = "records no number of permits: give one with --permits";
                    return Err(Failure::usage(format!("{path} {problem}")));
                };
                Permits::open_with_options(session, path, recorded, options)?
            }
        };
        Ok(semaphore.permits(self.weight)?)
    }
}
