//! The recipes, each with one that cannot be held beside it.

use std::time::Duration;

use zookeeper_recipes_core::{QueueOptions, Recipe, Session, WaitStrategy};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

/// A recipe, and one that cannot be held beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    make: Make,
    /// What a rival has at the same path.
    make_for_rival: Make,
    pub(crate) strategy: WaitStrategy,
    /// Whether its path is the contenders' znode itself, and not the directory of theirs.
    pub(crate) single_node: bool,
}

type Make = fn(&Session, &str, QueueOptions) -> Box<dyn Recipe>;

const POLL: WaitStrategy = WaitStrategy::Poll(Duration::from_millis(50));

pub(crate) const KINDS: &[Kind] = &[
    Kind::queue("lock", lock),
    Kind::queue("lock-at-the-parent", lock).waiting(WaitStrategy::Parent),
    Kind::queue("polled-lock", lock).waiting(POLL),
    Kind::queue("write-lock", write_lock),
    Kind::queue("read-lock", read_lock).with_rival(write_lock),
    Kind::queue("semaphore", |session, path, options| {
        Box::new(Semaphore::with_options(session, path, 1, options).expect("a good path"))
    }),
    Kind::queue("most-permits", most_permits),
    Kind::queue("most-permits-at-the-parent", most_permits).waiting(WaitStrategy::Parent),
    Kind::queue("election", |session, path, options| {
        let election = LeaderElection::with_options(session, path, "candidate", options);
        Box::new(election.expect("a good path"))
    }),
    Kind {
        single_node: true,
        ..Kind::queue("single-node", |session, path, _| {
            Box::new(SingleNodeLock::new(session, path).expect("a good path"))
        })
    },
];

fn lock(session: &Session, path: &str, options: QueueOptions) -> Box<dyn Recipe> {
    Box::new(ExclusiveLock::with_options(session, path, options).expect("a good path"))
}

fn write_lock(session: &Session, path: &str, options: QueueOptions) -> Box<dyn Recipe> {
    let lock = RwLock::with_options(session, path, options).expect("a good path");
    Box::new(lock.write().clone())
}

fn read_lock(session: &Session, path: &str, options: QueueOptions) -> Box<dyn Recipe> {
    let lock = RwLock::with_options(session, path, options).expect("a good path");
    Box::new(lock.read().clone())
}

/// So many of the permits that nobody else can have as many beside it.
fn most_permits(session: &Session, path: &str, options: QueueOptions) -> Box<dyn Recipe> {
    let semaphore = Semaphore::with_options(session, path, 5, options).expect("a good path");
    Box::new(semaphore.permits(3).expect("there are as many"))
}

impl Kind {
    const fn queue(name: &'static str, make: Make) -> Kind {
        Kind {
            name,
            make,
            make_for_rival: make,
            strategy: WaitStrategy::Predecessor,
            single_node: false,
        }
    }

    const fn waiting(self, strategy: WaitStrategy) -> Kind {
        Kind { strategy, ..self }
    }

    const fn with_rival(self, make_for_rival: Make) -> Kind {
        Kind {
            make_for_rival,
            ..self
        }
    }

    /// The recipe of this kind that stands for `day`.
    pub(crate) fn on(self, session: &Session, day: &str) -> Box<dyn Recipe> {
        (self.make)(session, &self.path(day), self.options())
    }

    /// What cannot be held while the recipe of this kind is held that stands for `day`, nor by two.
    pub(crate) fn rival_on(self, session: &Session, day: &str) -> Box<dyn Recipe> {
        (self.make_for_rival)(session, &self.path(day), self.options())
    }

    fn options(self) -> QueueOptions {
        QueueOptions::new().strategy(self.strategy)
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
