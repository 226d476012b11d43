//! The plan of one worker, as the worker reads it.

use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{NodePath, ServerError};

use crate::children::ChildrenOf;
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
    worker: String,
    pieces: ChildrenOf,
}

impl PlanOf {
    pub(crate) fn new(directory: &NodePath, worker: &str) -> PlanOf {
        PlanOf {
            worker: worker.to_owned(),
            pieces: ChildrenOf::some(directory),
        }
    }
}

impl Source for PlanOf {
    type Value = OwnPlan;

    fn path(&self) -> &NodePath {
        self.pieces.path()
    }

    fn reset(&mut self) {
        self.pieces.reset();
    }

    async fn read(&mut self, server: &dyn ServerSession) -> Result<OwnPlan, ServerError> {
        // The first piece says how many there are.
        let mut of = 1;
        loop {
            let name = |index| pieces::name(&self.worker, index);
            let found = self.pieces.read_these(server, (0..of).map(name)).await?;
            let (mut plan, known) = (Lines::new(), of);
            for name in (0..known).map(name) {
                let Some(data) = found.get(&name) else {
                    return Ok(OwnPlan::Missing);
                };
                match Piece::parse(PLAN, data) {
                    Ok(piece) => {
                        of = of.max(piece.of);
                        plan.extend(piece.lines);
                    }
                    Err(problem) => {
                        let path = format!("{}/{name}", self.pieces.path());
                        return Ok(OwnPlan::Unreadable(path, problem));
                    }
                }
            }
            if of == known {
                return Ok(OwnPlan::Plan(plan));
            }
        }
    }

    async fn changed(&mut self) {
        self.pieces.changed().await;
    }
}
