//! The plan of one worker, as the worker reads it.

use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{NodePath, ServerError};

use crate::children::ChildrenOf;
use crate::kept::Source;
use crate::pieces::{self, Lines, Piece, Record};

/// The kind of record that a plan is.
pub(crate) const PLAN: &str = "plan";

pub(crate) type OwnPlan = Record<Lines>;

/// The znodes of the plan of a worker.
pub(crate) struct PlanOf {
    pub(crate) worker: String,
    pub(crate) pieces: ChildrenOf,
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
        let (mut plan, mut of, mut index) = (Lines::new(), 1, 0);
        while index < of {
            let names = (index..of).map(|it| pieces::name(&self.worker, it));
            let found = self.pieces.read_these(server, names).await?;
            let name = pieces::name(&self.worker, index);
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
            index += 1;
        }
        Ok(OwnPlan::Found(plan))
    }

    async fn changed(&mut self) {
        self.pieces.changed().await;
    }
}
