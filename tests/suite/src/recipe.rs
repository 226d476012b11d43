//! The recipes, each once: how it is made, and what a judge must know of it.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_core::{
    Acl, AuthId, Error, Hold, InvalidInput, Permission, Recipe, Session, WaitStrategy,
};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, Locks, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

use crate::options::RecipeOptions;
use crate::pooled_lock::PooledLock;

/// What a writer weighs: more than any number of readers.
pub const WRITER: u64 = 1_000;

const PERMITS: u64 = 5;

/// Makes a recipe at a path, for a contender of this weight, where so much can be held in all.
type Make = fn(&Session, &str, u64, u64, RecipeOptions) -> Result<Box<dyn Recipe>, InvalidInput>;

/// A recipe, as far as tests have to know it.
///
/// Who excludes whom is a matter of weights: contenders hold together as long as their weights
/// sum to no more than the capacity. A reader weighs one and a writer all of it.
#[derive(Clone, Copy)]
pub struct TestedRecipe {
    pub name: &'static str,
    /// How much can be held at a time.
    pub capacity: u64,
    /// The weights that contenders are given: one for each kind of contender, the frequent ones
    /// more than once.
    pub weights: &'static [u64],
    /// How contenders wait, in place of the way in the options; `None` if they wait as the options
    /// say.
    pub strategy: Option<WaitStrategy>,
    /// True if contenders queue as znodes under the path. Otherwise the holder's znode is the path.
    pub queues: bool,
    /// True if the capacity is recorded at the path and can be changed.
    pub resizes: bool,
    /// True if the holder leads, and can be observed.
    pub elects: bool,
    /// How a hold of all the capacity becomes a lesser one, if it can.
    pub downgrade: Option<Downgrade>,
    make: Make,
    weight_of: fn(&str) -> Option<u64>,
    foreign: &'static [&'static str],
}

/// How a hold becomes one of another kind.
#[derive(Clone, Copy, Debug)]
pub struct Downgrade {
    /// The label of the old znode.
    pub from: &'static str,
    /// The label of the new one.
    pub to: &'static str,
    pub weight: u64,
}

impl fmt::Debug for TestedRecipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl TestedRecipe {
    pub const ALL: [TestedRecipe; 7] = [
        LOCK,
        LOCK_BY_PARENT,
        LOCK_BY_POLLING,
        LOCK_OF_ONE_ZNODE,
        RWLOCK,
        SEMAPHORE,
        ELECTION,
    ];

    pub fn named(name: &str) -> Option<TestedRecipe> {
        TestedRecipe::ALL
            .into_iter()
            .find(|recipe| recipe.name == name)
    }

    /// The same recipe, whose contenders wait in this way.
    pub const fn waiting(self, strategy: WaitStrategy) -> TestedRecipe {
        TestedRecipe {
            strategy: Some(strategy),
            ..self
        }
    }

    /// The same recipe, with so much to be held in all.
    pub const fn of(self, capacity: u64) -> TestedRecipe {
        TestedRecipe { capacity, ..self }
    }

    /// Makes it at a path, for a contender of this weight.
    ///
    /// An election takes the data of the options for the candidate's id.
    pub fn make(
        &self,
        session: &Session,
        path: &str,
        weight: u64,
        options: RecipeOptions,
    ) -> Result<Box<dyn Recipe>, InvalidInput> {
        let options = match self.strategy {
            Some(strategy) => options.strategy(strategy),
            None => options,
        };
        (self.make)(session, path, weight, self.capacity, options)
    }

    /// Makes it at a path, for a contender of this weight, with the default options.
    pub fn at(&self, session: &Session, path: &str, weight: u64) -> Box<dyn Recipe> {
        let made = self.make(session, path, weight, RecipeOptions::new());
        made.expect("a good path")
    }

    /// What a contender weighs whose znode has this name; none if it is no contender.
    pub fn weight_of(&self, name: &str) -> Option<u64> {
        (self.weight_of)(name)
    }

    /// True if two contenders of these weights may not hold together.
    pub fn excludes(&self, one: u64, other: u64) -> bool {
        one + other > self.capacity
    }

    /// The name of a contender as another library would write it, without its number; none if no
    /// other library queues here.
    pub fn foreign_contender(&self, rng: &mut Rng) -> Option<String> {
        let label = rng.choice(self.foreign)?;
        let identity = rng.u128(..);
        Some(if label.starts_with('_') {
            format!("{identity:032x}{label}")
        } else {
            format!("_c_{identity:032x}-{label}")
        })
    }
}

/// Changes how much can be held at a path.
pub async fn resize(session: &Session, path: &str, to: u64) -> Result<(), Error> {
    let permits = to as u32;
    Semaphore::new(session, path, permits)?
        .resize(permits)
        .await
}

/// A candidate, which is more than a recipe.
pub fn candidate(
    session: &Session,
    path: &str,
    options: RecipeOptions,
) -> Result<LeaderElection, InvalidInput> {
    let (id, options) = options.election();
    LeaderElection::with_options(session, path, id, options)
}

/// Renews a hold as one of a lesser weight.
pub async fn downgrade(hold: Hold, how: Downgrade) -> Result<Hold, Error> {
    let everyone = Acl::new(Permission::ALL, AuthId::anyone());
    hold.replace(how.from, how.to, b"", &[everyone]).await
}

/// The exclusive lock, by default with the way to wait that it has by default.
pub const LOCK: TestedRecipe = TestedRecipe {
    name: "lock",
    capacity: 1,
    weights: &[1],
    strategy: None,
    queues: true,
    resizes: false,
    elects: false,
    downgrade: None,
    make: |session, path, _, _, options| {
        let options = options.lock();
        let lock = ExclusiveLock::with_options(session, path, options)?;
        Ok(Box::new(lock))
    },
    weight_of: |name| (label_of(name)? == "lock-" || label_of(name)? == "__lock__").then_some(1),
    foreign: &["lock-", "__lock__"],
};

/// The exclusive lock whose waiters watch the directory.
pub const LOCK_BY_PARENT: TestedRecipe = TestedRecipe {
    name: "lock-parent",
    ..LOCK.waiting(WaitStrategy::Parent)
};

/// The exclusive lock whose waiters poll.
pub const LOCK_BY_POLLING: TestedRecipe = TestedRecipe {
    name: "lock-poll",
    ..LOCK.waiting(WaitStrategy::Poll(Duration::from_millis(500)))
};

/// The exclusive lock of a name, as one value for many locks makes it.
pub const LOCK_OF_A_NAME: TestedRecipe = TestedRecipe {
    name: "lock-of-a-name",
    make: |session, path, _, _, options| {
        let (parent, name) = path.rsplit_once('/').unwrap_or_default();
        let locks = Locks::with_options(session, parent, options.lock())?;
        Ok(Box::new(locks.lock(name)?))
    },
    ..LOCK
};

/// The exclusive lock that each call takes from a pool of locks, which forgets the idle ones.
pub const LOCK_OF_A_POOL: TestedRecipe = TestedRecipe {
    name: "locks",
    make: |session, path, _, _, options| {
        let lock = PooledLock::new(session, path, options.lock())?;
        Ok(Box::new(lock))
    },
    ..LOCK
};

pub const LOCK_OF_ONE_ZNODE: TestedRecipe = TestedRecipe {
    name: "lock-single-node",
    queues: false,
    make: |session, path, _, _, options| {
        let lock = SingleNodeLock::with_options(session, path, options.single_node())?;
        Ok(Box::new(lock))
    },
    weight_of: |_| None,
    foreign: &[],
    ..LOCK
};

/// The read/write lock.
pub const RWLOCK: TestedRecipe = TestedRecipe {
    name: "rwlock",
    capacity: WRITER,
    weights: &[1, 1, WRITER],
    downgrade: Some(Downgrade {
        from: "__WRIT__",
        to: "__READ__",
        weight: 1,
    }),
    make: |session, path, weight, _, options| {
        let lock = RwLock::with_options(session, path, options.rwlock())?;
        Ok(match weight {
            WRITER => Box::new(lock.write().clone()),
            _ => Box::new(lock.read().clone()),
        })
    },
    weight_of: |name| match label_of(name)? {
        "__READ__" | "__rlock__" => Some(1),
        "__WRIT__" | "__lock__" => Some(WRITER),
        _ => None,
    },
    foreign: &["__READ__", "__WRIT__", "__rlock__", "__lock__"],
    ..LOCK
};

pub const SEMAPHORE: TestedRecipe = TestedRecipe {
    name: "semaphore",
    capacity: PERMITS,
    weights: &[1, 1, 2, 3, 5],
    resizes: true,
    make: |session, path, weight, capacity, options| {
        let semaphore =
            Semaphore::with_options(session, path, capacity as u32, options.semaphore())?;
        Ok(Box::new(semaphore.permits(weight as u32)?))
    },
    weight_of: |name| {
        label_of(name)?
            .strip_prefix("permit-")?
            .strip_suffix('-')?
            .parse()
            .ok()
    },
    foreign: &[],
    ..LOCK
};

pub const ELECTION: TestedRecipe = TestedRecipe {
    name: "election",
    elects: true,
    make: |session, path, _, _, options| Ok(Box::new(candidate(session, path, options)?)),
    weight_of: |name| matches!(label_of(name)?, "latch-" | "standby-latch-").then_some(1),
    foreign: &["latch-", "standby-latch-"],
    ..LOCK
};

/// The label in a znode's name, read without any of the code under test.
fn label_of(name: &str) -> Option<&str> {
    let labelled = match name.strip_prefix("_c_") {
        Some(rest) => {
            let canonical = rest.get(8..9) == Some("-");
            rest.get(if canonical { 37 } else { 33 }..)?
        }
        None => {
            let (identity, rest) = name.split_at_checked(32)?;
            identity
                .bytes()
                .all(|it| it.is_ascii_hexdigit())
                .then_some(rest)?
        }
    };
    let end = labelled.len().checked_sub(10)?;
    let label = labelled.get(..end)?;
    // Past the end of the count a server writes a minus sign too; no label here ends with two.
    let negative = label.ends_with("--") || label.ends_with("__-");
    Some(match negative {
        true => &label[..label.len() - 1],
        false => label,
    })
}
