//! The ways to wait for a lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::{InvalidInput, Recipe, Session, WaitStrategy};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions, SingleNodeLock};

/// The interval in which a polling waiter lists the queue.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
pub struct Way {
    pub name: &'static str,
    /// Which waiters wake when a contender comes or goes.
    pub wakes: Wakes,
    /// How the contenders of the queue wait, and whether releases are marked; `None` for a lock
    /// without a queue.
    queue: Option<(WaitStrategy, bool)>,
}

/// Which waiters wake when a contender comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// No waiter: each lists the queue from time to time.
    Nobody,
    /// Every waiter.
    Everybody,
    /// No waiter if a contender comes; the waiters whose turn may have come if one goes.
    WhomItConcerns,
}

impl Way {
    /// A lock without a queue: all wait for one znode, and each release wakes all.
    pub const SINGLE_NODE: Way = Way::new("single node", Wakes::Everybody, None);

    /// Each waiter lists the queue every [`POLL_INTERVAL`].
    pub const POLL: Way = Way::new(
        "poll",
        Wakes::Nobody,
        Some((WaitStrategy::Poll(POLL_INTERVAL), false)),
    );

    /// Each waiter watches the directory, and each change of it wakes all.
    pub const PARENT: Way = Way::new(
        "parent",
        Wakes::Everybody,
        Some((WaitStrategy::Parent, false)),
    );

    /// Each waiter watches its predecessor, and lists the queue when it wakes.
    pub const PREDECESSOR_LISTED: Way = Way::new(
        "predecessor (list on wake)",
        Wakes::WhomItConcerns,
        Some((WaitStrategy::Predecessor, false)),
    );

    /// Each waiter watches its predecessor, whose marked release grants without a read.
    pub const PREDECESSOR: Way = Way::new(
        "predecessor (no read)",
        Wakes::WhomItConcerns,
        Some((WaitStrategy::Predecessor, true)),
    );

    /// All ways, the most expensive first.
    pub const ALL: [Way; 5] = [
        Way::SINGLE_NODE,
        Way::POLL,
        Way::PARENT,
        Way::PREDECESSOR_LISTED,
        Way::PREDECESSOR,
    ];

    /// A way of this name. `queue` is how the contenders wait, and whether releases are marked;
    /// without it there is no queue.
    pub const fn new(name: &'static str, wakes: Wakes, queue: Option<(WaitStrategy, bool)>) -> Way {
        Way { name, wakes, queue }
    }

    /// Whether it has a queue, so that contenders hold in the order in which they came.
    pub fn has_queue(&self) -> bool {
        self.queue.is_some()
    }

    /// The lock of one contender. Its znode's data is `name`.
    pub fn lock(
        &self,
        session: &Session,
        path: &str,
        name: &str,
    ) -> Result<Arc<dyn Recipe>, InvalidInput> {
        let Some((strategy, marks_release)) = self.queue else {
            return Ok(Arc::new(SingleNodeLock::new(session, path)?));
        };
        let options = LockOptions::new()
            .data(name)
            .strategy(strategy)
            .mark_release(marks_release);
        let lock = ExclusiveLock::with_options(session, path, options)?;
        Ok(Arc::new(lock))
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
