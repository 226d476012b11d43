//! The libraries whose fleets are measured.

use zookeeper_recipes_interop::Program;

use crate::curator::Curator;
use crate::ours::Ours;
use crate::party::Party;
use crate::plan::Plan;

pub(crate) enum Library {
    Ours,
    Curator(Program),
}

impl Library {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Library::Ours => "ours",
            Library::Curator(_) => "Curator",
        }
    }

    /// Opens the sessions, acquires the locks that they hold, and begins the turns.
    pub(crate) async fn open(
        &self,
        connect_string: &str,
        plan: Plan,
    ) -> anyhow::Result<Box<dyn Party>> {
        Ok(match self {
            Library::Ours => Box::new(Ours::open(connect_string, plan).await?),
            Library::Curator(program) => {
                Box::new(Curator::open(program, connect_string, plan).await?)
            }
        })
    }
}
