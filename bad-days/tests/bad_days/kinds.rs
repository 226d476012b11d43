//! The recipes that only one can hold at a time.

use zookeeper_recipes_core::{Recipe, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::SharedLock;
use zookeeper_recipes_semaphore::Semaphore;

/// A recipe that only one can hold at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) make: fn(&Session, &str) -> Box<dyn Recipe>,
    /// Whether its path is the contenders' znode itself, and not the directory of theirs.
    pub(crate) single_node: bool,
}

pub(crate) const KINDS: &[Kind] = &[
    Kind::queue("lock", |session, path| {
        Box::new(ExclusiveLock::new(session, path).expect("a good path"))
    }),
    Kind::queue("write-lock", |session, path| {
        let lock = SharedLock::new(session, path).expect("a good path");
        Box::new(lock.write().clone())
    }),
    Kind::queue("semaphore", |session, path| {
        Box::new(Semaphore::new(session, path, 1).expect("a good path"))
    }),
    Kind::queue("election", |session, path| {
        Box::new(LeaderElection::new(session, path, "candidate").expect("a good path"))
    }),
    Kind {
        single_node: true,
        ..Kind::queue("single-node", |session, path| {
            Box::new(SingleNodeLock::new(session, path).expect("a good path"))
        })
    },
];

impl Kind {
    const fn queue(name: &'static str, make: fn(&Session, &str) -> Box<dyn Recipe>) -> Kind {
        Kind {
            name,
            make,
            single_node: false,
        }
    }

    /// The recipe of this kind that stands for `day`.
    pub(crate) fn on(self, session: &Session, day: &str) -> Box<dyn Recipe> {
        (self.make)(session, &self.path(day))
    }

    pub(crate) fn path(self, day: &str) -> String {
        format!("/{}/{day}/held", self.name)
    }

    /// The znode whose children the contenders are.
    pub(crate) fn directory(self, day: &str) -> String {
        match self.single_node {
            true => format!("/{}/{day}", self.name),
            false => self.path(day),
        }
    }
}
