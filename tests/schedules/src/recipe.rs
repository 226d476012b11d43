//! The recipes under test: how each is made, and who may hold together with whom.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_core::{
    Acl, AuthId, Error, Hold, InvalidInput, Permission, QueueOptions, Recipe, Session,
    SingleNodeOptions, WaitStrategy,
};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

/// Where the recipe under test stands in the tree.
pub const PATH: &str = "/recipe/under-test";

/// Where the lock stands that is acquired together with it.
const BESIDE: &str = "/recipe/beside";

/// Outweighs any number of readers.
const WRITER: u64 = 1_000;

const PERMITS: u32 = 5;

/// Makes the recipe at a path, of a weight, where so much can be held in all.
type Make = fn(&Session, &str, u64, u64, QueueOptions) -> Result<Box<dyn Recipe>, InvalidInput>;

/// A recipe, as far as a simulation has to know it.
///
/// Who excludes whom is a matter of weights: contenders hold together as long as their weights
/// sum to no more than the capacity. A reader weighs one and a writer all of it.
#[derive(Clone, Copy)]
pub struct RecipeUnderTest {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Where it stands in the tree.
    pub path: &'static str,
    /// The znode that is written to under its guard.
    pub guarded: &'static str,
    /// How much can be held at a time, unless it is changed; never more than this.
    pub capacity: u64,
    /// The weights that contenders are given.
    pub weights: &'static [u64],
    /// Whether contenders queue as znodes under the path; otherwise the holder's znode is there.
    pub queues: bool,
    /// Whether how much can be held is recorded at the path, and can be changed.
    pub resizes: bool,
    /// Whether whoever holds it leads, and can be observed.
    pub elects: bool,
    /// As what weight a hold of all the capacity can go on, where it can.
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
    /// What the new one weighs.
    pub weight: u64,
}

impl fmt::Debug for RecipeUnderTest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl RecipeUnderTest {
    /// All of them.
    pub const ALL: [RecipeUnderTest; 7] = [
        LOCK,
        LOCK_BY_PARENT,
        LOCK_BY_POLLING,
        LOCK_OF_ONE_ZNODE,
        SHARED_LOCK,
        SEMAPHORE,
        ELECTION,
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<RecipeUnderTest> {
        RecipeUnderTest::ALL
            .into_iter()
            .find(|recipe| recipe.name == name)
    }

    /// Makes it, for a contender of this weight who takes `capacity` for what can be held.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when it refuses the options.
    pub fn make(
        &self,
        session: &Session,
        weight: u64,
        capacity: u64,
        options: QueueOptions,
    ) -> Result<Box<dyn Recipe>, InvalidInput> {
        (self.make)(session, self.path, weight, capacity, options)
    }

    /// Makes it at another path, for a contender of this weight.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when it refuses the path or the options.
    pub fn make_at(
        &self,
        session: &Session,
        path: &str,
        weight: u64,
        options: QueueOptions,
    ) -> Result<Box<dyn Recipe>, InvalidInput> {
        (self.make)(session, path, weight, self.capacity, options)
    }

    /// What a contender weighs whose znode has this name; none where it is no contender.
    pub fn weight_of(&self, name: &str) -> Option<u64> {
        (self.weight_of)(name)
    }

    /// Whether two contenders of these weights may not hold together.
    pub fn excludes(&self, one: u64, other: u64) -> bool {
        one + other > self.capacity
    }

    /// Whether all who hold exclude each other.
    pub fn is_exclusive(&self, weight: u64) -> bool {
        self.excludes(weight, 1)
    }

    /// The name of a contender as another library would write it, without its number; none where
    /// no other library queues here.
    pub fn foreign_contender(&self, rng: &mut Rng) -> Option<String> {
        let label = rng.choice(self.foreign)?;
        let identity = rng.u128(..);
        Some(if label.starts_with('_') {
            format!("{identity:032x}{label}")
        } else {
            format!("_c_{identity:032x}-{label}")
        })
    }

    /// A handover from one who lets go to the next in the process, without the server: what a
    /// znode stands for then is not one grant.
    pub fn hands_over(&self) -> bool {
        self.queues && self.capacity == 1
    }
}

/// Changes how much can be held, given how much it is now.
///
/// # Errors
///
/// Those of [`Semaphore::resize`].
pub(crate) async fn resize(session: &Session, capacity: u64, to: u64) -> Result<(), Error> {
    let semaphore = Semaphore::new(session, PATH, capacity as u32)?;
    semaphore.resize(to as u32).await
}

/// A candidate, which is more than a recipe.
///
/// # Errors
///
/// [`InvalidInput`] when it refuses the options.
pub(crate) fn candidate(
    session: &Session,
    options: QueueOptions,
) -> Result<LeaderElection, InvalidInput> {
    LeaderElection::with_options(session, PATH, "participant", options)
}

/// Renews a hold as one of a lesser weight.
///
/// # Errors
///
/// Those of [`Hold::replace`].
pub(crate) async fn downgrade(hold: Hold, how: Downgrade) -> Result<Hold, Error> {
    let everyone = Acl::new(Permission::ALL, AuthId::anyone());
    hold.replace(how.from, how.to, b"", &[everyone]).await
}

const LOCK: RecipeUnderTest = RecipeUnderTest {
    name: "lock",
    path: PATH,
    guarded: "/guarded",
    capacity: 1,
    weights: &[1],
    queues: true,
    resizes: false,
    elects: false,
    downgrade: None,
    make: |session, path, _, _, options| {
        Ok(Box::new(ExclusiveLock::with_options(
            session, path, options,
        )?))
    },
    weight_of: |name| (label_of(name)? == "lock-" || label_of(name)? == "__lock__").then_some(1),
    foreign: &["lock-", "__lock__"],
};

const LOCK_BY_PARENT: RecipeUnderTest = RecipeUnderTest {
    name: "lock-parent",
    make: |session, path, _, _, options| {
        let options = options.strategy(WaitStrategy::Parent);
        Ok(Box::new(ExclusiveLock::with_options(
            session, path, options,
        )?))
    },
    ..LOCK
};

const LOCK_BY_POLLING: RecipeUnderTest = RecipeUnderTest {
    name: "lock-poll",
    make: |session, path, _, _, options| {
        let options = options.strategy(WaitStrategy::Poll(Duration::from_millis(500)));
        Ok(Box::new(ExclusiveLock::with_options(
            session, path, options,
        )?))
    },
    ..LOCK
};

const LOCK_OF_ONE_ZNODE: RecipeUnderTest = RecipeUnderTest {
    name: "lock-single-node",
    queues: false,
    make: |session, path, _, _, _| {
        let options = SingleNodeOptions::new();
        Ok(Box::new(SingleNodeLock::with_options(
            session, path, options,
        )?))
    },
    weight_of: |_| None,
    foreign: &[],
    ..LOCK
};

/// What the recipe under test is acquired together with.
pub(crate) const LOCK_BESIDE: RecipeUnderTest = RecipeUnderTest {
    name: "lock-beside",
    path: BESIDE,
    guarded: "/guarded-beside",
    ..LOCK
};

const SHARED_LOCK: RecipeUnderTest = RecipeUnderTest {
    name: "rwlock",
    capacity: WRITER,
    weights: &[1, 1, WRITER],
    downgrade: Some(Downgrade {
        from: "__WRIT__",
        to: "__READ__",
        weight: 1,
    }),
    make: |session, path, weight, _, options| {
        let lock = RwLock::with_options(session, path, options)?;
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

const SEMAPHORE: RecipeUnderTest = RecipeUnderTest {
    name: "semaphore",
    capacity: PERMITS as u64,
    weights: &[1, 1, 2, 3, 5],
    resizes: true,
    make: |session, path, weight, capacity, options| {
        let semaphore = Semaphore::with_options(session, path, capacity as u32, options)?;
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

const ELECTION: RecipeUnderTest = RecipeUnderTest {
    name: "election",
    elects: true,
    make: |session, _, _, _, options| Ok(Box::new(candidate(session, options)?)),
    weight_of: |name| (label_of(name)? == "latch-").then_some(1),
    foreign: &["latch-"],
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
