//! A candidate: its queue, its id and its rule.

use std::sync::Arc;

use zookeeper_recipes_core::{NodePath, Queue, Session};

use crate::rule::FirstCandidate;

/// The parts that an election, a leadership and a term share.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) queue: Queue,
    pub(crate) id: Arc<str>,
    pub(crate) rule: FirstCandidate,
}

impl Candidate {
    pub(crate) fn session(&self) -> &Session {
        self.queue.session()
    }

    /// The directory of the election.
    pub(crate) fn path(&self) -> &NodePath {
        self.queue.path()
    }
}
