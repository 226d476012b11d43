//! A candidate: its queue and its id.

use std::sync::Arc;

use zookeeper_recipes_core::{NodePath, Queue, Session};

/// The parts that an election, a leadership and a term share.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) queue: Queue,
    pub(crate) id: Arc<str>,
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
