//! The recipes under test: how each is made, and who may hold together with whom.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use zookeeper_recipes_core::{
    Hold, InvalidInput, QueueOptions, Recipe, Session, SingleNodeOptions, WaitStrategy,
};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::SharedLock;
use zookeeper_recipes_semaphore::Semaphore;

/// Where the recipe under test stands in the tree.
pub const PATH: &str = "/recipe/under-test";

/// Outweighs any number of readers.
const WRITER: u64 = 1_000;

const PERMITS: u32 = 5;

/// Makes the recipe of a weight.
type Make = fn(&Session, &str, u64, QueueOptions) -> Result<Arc<dyn Recipe>, InvalidInput>;

/// A recipe, as far as a simulation has to know it.
///
/// Who excludes whom is a matter of weights: contenders hold together as long as their weights
/// sum to no more than the capacity. A reader weighs one and a writer all of it.
#[derive(Clone, Copy)]
pub struct RecipeUnderTest {
    /// What it is called on the command line.
    pub name: &'static str,
    /// How much can be held at a time.
    pub capacity: u64,
    /// The weights that contenders are given.
    pub weights: &'static [u64],
    /// Whether contenders queue as znodes under [`PATH`]; otherwise the holder's znode is there.
    pub queues: bool,
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

    /// Makes it at [`PATH`], for a contender of this weight.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when it refuses the options.
    pub fn make(
        &self,
        session: &Session,
        weight: u64,
        options: QueueOptions,
    ) -> Result<Arc<dyn Recipe>, InvalidInput> {
        self.make_at(session, PATH, weight, options)
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
    ) -> Result<Arc<dyn Recipe>, InvalidInput> {
        (self.make)(session, path, weight, options)
    }

    /// What a contender weighs whose znode has this name; none where it is no contender.
    pub fn weight_of(&self, name: &str) -> Option<u64> {
        (self.weight_of)(name)
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

/// Renews a hold as one of a lesser weight.
///
/// # Errors
///
/// Those of [`Hold::exchange`].
pub(crate) async fn downgrade(
    hold: Hold,
    how: Downgrade,
) -> Result<Hold, zookeeper_recipes_core::Error> {
    let everyone = zookeeper_recipes_core::Acl::new(
        zookeeper_recipes_core::Permission::ALL,
        zookeeper_recipes_core::AuthId::anyone(),
    );
    hold.exchange(how.from, how.to, b"", &[everyone]).await
}

const LOCK: RecipeUnderTest = RecipeUnderTest {
    name: "lock",
    capacity: 1,
    weights: &[1],
    queues: true,
    downgrade: None,
    make: |session, path, _, options| {
        Ok(Arc::new(ExclusiveLock::with_options(
            session, path, options,
        )?))
    },
    weight_of: |name| (label_of(name)? == "lock-" || label_of(name)? == "__lock__").then_some(1),
    foreign: &["lock-", "__lock__"],
};

const LOCK_BY_PARENT: RecipeUnderTest = RecipeUnderTest {
    name: "lock-parent",
    make: |session, path, _, options| {
        let options = options.strategy(WaitStrategy::Parent);
        Ok(Arc::new(ExclusiveLock::with_options(
            session, path, options,
        )?))
    },
    ..LOCK
};

const LOCK_BY_POLLING: RecipeUnderTest = RecipeUnderTest {
    name: "lock-poll",
    make: |session, path, _, options| {
        let options = options.strategy(WaitStrategy::Poll(Duration::from_millis(500)));
        Ok(Arc::new(ExclusiveLock::with_options(
            session, path, options,
        )?))
    },
    ..LOCK
};

const LOCK_OF_ONE_ZNODE: RecipeUnderTest = RecipeUnderTest {
    name: "lock-single-node",
    queues: false,
    make: |session, path, _, _| {
        let options = SingleNodeOptions::new();
        Ok(Arc::new(SingleNodeLock::with_options(
            session, path, options,
        )?))
    },
    weight_of: |_| None,
    foreign: &[],
    ..LOCK
};

const SHARED_LOCK: RecipeUnderTest = RecipeUnderTest {
    name: "rwlock",
    capacity: WRITER,
    weights: &[1, 1, WRITER],
    queues: true,
    downgrade: Some(Downgrade {
        from: "__WRIT__",
        to: "__READ__",
        weight: 1,
    }),
    make: |session, path, weight, options| {
        let lock = SharedLock::with_options(session, path, options)?;
        Ok(match weight {
            WRITER => Arc::new(lock.write().clone()),
            _ => Arc::new(lock.read().clone()),
        })
    },
    weight_of: |name| match label_of(name)? {
        "__READ__" | "__rlock__" => Some(1),
        "__WRIT__" | "__lock__" => Some(WRITER),
        _ => None,
    },
    foreign: &["__READ__", "__WRIT__", "__rlock__", "__lock__"],
};

const SEMAPHORE: RecipeUnderTest = RecipeUnderTest {
    name: "semaphore",
    capacity: PERMITS as u64,
    weights: &[1, 1, 2, 3, 5],
    queues: true,
    downgrade: None,
    make: |session, path, weight, options| {
        let semaphore = Semaphore::with_options(session, path, PERMITS, options)?;
        Ok(Arc::new(semaphore.permits(weight as u32)?))
    },
    weight_of: |name| {
        label_of(name)?
            .strip_prefix("permit-")?
            .strip_suffix('-')?
            .parse()
            .ok()
    },
    foreign: &[],
};

const ELECTION: RecipeUnderTest = RecipeUnderTest {
    name: "election",
    make: |session, path, _, options| {
        let id = "participant";
        let election = LeaderElection::with_options(session, path, id, options)?;
        Ok(Arc::new(election))
    },
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
