//! `zkr semaphore`: a command under some permits of a semaphore.

use clap::Args;
use zookeeper_recipes_core::{AfterSessionLoss, Recipe, Session};
use zookeeper_recipes_semaphore::{Semaphore as Permits, SemaphoreOptions};

use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run::HoldArguments;

/// Run a command under permits of a semaphore.
///
/// The first contender records the number of permits. `zkr resize` changes it. Without --permits,
/// the recorded number applies. If --permits differs from the recorded number, zkr fails.
///
/// The command gets ZKR_FENCING_TOKEN, ZKR_PATH and ZKR_NODE in its environment. If the permits are
/// about to be lost, zkr stops the command and its children before another process can acquire them.
#[derive(Debug, Args)]
pub(crate) struct Semaphore {
    /// The directory of the semaphore, such as /limits/exports.
    path: String,

    /// How many permits the semaphore has; by default the recorded number.
    #[arg(long, value_name = "N")]
    permits: Option<u32>,

    /// How many permits the command needs.
    #[arg(long, value_name = "W", default_value_t = 1)]
    weight: u32,

    #[command(flatten)]
    hold: HoldArguments,
}

impl Semaphore {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let under_hold = self.hold.under_hold(connection);
        let make = async |session: &Session| self.make(session).await;
        under_hold.run(make).await
    }

    async fn make(&self, session: &Session) -> Result<Box<dyn Recipe>, Failure> {
        let mut options = SemaphoreOptions::new().after_session_loss(AfterSessionLoss::Requeue);
        if let Some(limit) = self.hold.task.max_hold {
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
        Ok(Box::new(semaphore.permits(self.weight)?))
    }
}
