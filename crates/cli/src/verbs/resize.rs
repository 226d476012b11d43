//! `zkr resize`: changes the number of permits of a semaphore.

use clap::Args;
use zookeeper_recipes_core::{NodePath, Session};
use zookeeper_recipes_semaphore::Semaphore;

use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;

/// Change the number of permits of a semaphore.
///
/// No holder loses its permits. If more permits are in use than the new number, no waiter acquires
/// any until enough are released. The number is stored in the directory, which the servers may
/// delete once it is empty.
#[derive(Debug, Args)]
pub(crate) struct Resize {
    /// The directory of the semaphore.
    path: String,

    /// The new number of permits.
    permits: u32,
}

impl Resize {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let path = NodePath::new(&self.path)?;
        let resized = connection.within(async |session| self.in_session(session, &path).await);
        let before = resized.await?;
        print(&format!(
            "{path} has {} permits, and had {before}\n",
            self.permits
        ))?;
        Ok(Exit::Done)
    }

    /// Changes the number, and returns the one before.
    async fn in_session(&self, session: &Session, path: &NodePath) -> Result<u32, Failure> {
        let semaphore = Semaphore::open(session, path, self.permits)?;
        let Some(recorded) = semaphore.recorded().await? else {
            let problem = "records no number of permits: it is not a semaphore";
            return Err(Failure::usage(format!("{path} {problem}")));
        };
        semaphore.resize(self.permits).await?;
        Ok(recorded)
    }
}
