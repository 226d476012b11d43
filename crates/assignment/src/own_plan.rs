//! The plan of one worker, as the worker reads it.

use futures_util::future::select_all;
use zookeeper_recipes_core::ensemble::{ServerSession, Watch};
use zookeeper_recipes_core::{NodePath, Refusal, ServerError};

use crate::kept::Source;
use crate::pieces::{self, Lines, Piece, Unreadable};

/// The kind of record that a plan is.
pub(crate) const PLAN: &str = "plan";

/// The plan of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnPlan {
    /// There is none, or a piece of it is missing.
    Missing,
    /// The path of a piece, and why it cannot be read.
    Unreadable(String, Unreadable),
    Plan(Lines),
}

/// The znodes of the plan of a worker.
pub(crate) struct PlanOf {
    directory: NodePath,
    worker: String,
    watches: Vec<Watch>,
}

impl PlanOf {
    pub(crate) fn new(directory: &NodePath, worker: &str) -> PlanOf {
        PlanOf {
            directory: directory.clone(),
            worker: worker.to_owned(),
            watches: Vec::new(),
        }
    }

    /// Reads a piece and watches it. `None` if it does not exist.
    async fn read_piece(
        &mut self,
        server: &dyn ServerSession,
        path: &str,
    ) -> Result<Option<Vec<u8>>, ServerError> {
        loop {
            match server.get_and_watch(path).await {
                Ok((data, _, changed)) => {
                    self.watches.push(changed);
                    return Ok(Some(data));
                }
                Err(error) if error.is(Refusal::NoNode) => {}
                Err(error) => return Err(error),
            }
            if let (None, created) = server.exists_and_watch(path).await? {
                self.watches.push(created);
                return Ok(None);
            }
        }
    }
}

impl Source for PlanOf {
    type Value = OwnPlan;

    fn path(&self) -> &NodePath {
        &self.directory
    }

    fn reset(&mut self) {
        self.watches.clear();
    }

    async fn read(&mut self, server: &dyn ServerSession) -> Result<OwnPlan, ServerError> {
        self.watches.clear();
        let (mut plan, mut of, mut index) = (Lines::new(), 1, 0);
        while index < of {
            let path = format!("{}/{}", self.directory, pieces::name(&self.worker, index));
            let Some(data) = self.read_piece(server, &path).await? else {
                return Ok(OwnPlan::Missing);
            };
            match Piece::parse(PLAN, &data) {
                Ok(piece) => {
                    of = of.max(piece.of);
                    plan.extend(piece.lines);
                }
                Err(problem) => return Ok(OwnPlan::Unreadable(path, problem)),
            }
            index += 1;
        }
        Ok(OwnPlan::Plan(plan))
    }

    async fn changed(&mut self) {
        if !self.watches.is_empty() {
            select_all(&mut self.watches).await;
        }
    }
}
