//! The kinds of contenders, each with one that cannot hold beside it.

use std::time::Duration;

use zookeeper_recipes_core::{Recipe, Session, WaitStrategy};

use crate::recipe::{
    ELECTION, LOCK, LOCK_BY_PARENT, LOCK_BY_POLLING, LOCK_OF_ONE_ZNODE, RWLOCK, SEMAPHORE,
    TestedRecipe, WRITER,
};

/// How often a contender polls on a real server.
pub const POLL: WaitStrategy = WaitStrategy::Poll(Duration::from_millis(50));

/// All kinds, for tests on a real server.
pub const KINDS: &[Kind] = &[
    Kind::new("lock", LOCK, 1),
    Kind::new("lock-parent", LOCK_BY_PARENT, 1),
    Kind::new("lock-poll", LOCK_BY_POLLING.waiting(POLL), 1),
    Kind::new("write-lock", RWLOCK, WRITER),
    Kind::new("read-lock", RWLOCK, 1),
    Kind::new("semaphore", SEMAPHORE.of(1), 1),
    Kind::new("most-permits", SEMAPHORE, 3),
    Kind::new("election", ELECTION, 1),
    Kind::new("lock-single-node", LOCK_OF_ONE_ZNODE, 1),
];

#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub recipe: TestedRecipe,
    /// How much of the capacity it wants.
    pub weight: u64,
}

impl Kind {
    pub const fn new(name: &'static str, recipe: TestedRecipe, weight: u64) -> Kind {
        Kind {
            name,
            recipe,
            weight,
        }
    }

    /// Makes the contender's recipe at a path.
    pub fn at(self, session: &Session, path: &str) -> Box<dyn Recipe> {
        self.recipe.at(session, path, self.weight)
    }

    /// What cannot hold beside this kind, nor beside another of its own kind.
    pub fn rival(self) -> Kind {
        let weight = match self.recipe.excludes(self.weight, self.weight) {
            true => self.weight,
            false => self.recipe.capacity,
        };
        Kind { weight, ..self }
    }

    pub fn on(self, session: &Session, scenario: &str) -> Box<dyn Recipe> {
        self.at(session, &self.path(scenario))
    }

    /// The recipe that cannot be held while that of this kind is held in a scenario.
    pub fn rival_on(self, session: &Session, scenario: &str) -> Box<dyn Recipe> {
        self.rival().on(session, scenario)
    }

    pub fn path(self, scenario: &str) -> String {
        format!("/{}/{scenario}/held", self.name)
    }

    /// The znode whose children the contenders are.
    pub fn directory(self, scenario: &str) -> String {
        match self.recipe.queues {
            true => self.path(scenario),
            false => format!("/{}/{scenario}", self.name),
        }
    }

    pub fn strategy(self) -> WaitStrategy {
        self.recipe.strategy.unwrap_or_default()
    }
}
