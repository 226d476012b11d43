//! The ways to wait for a lock.

use std::fmt;
use std::time::Duration;

use zookeeper_recipes_core::{InvalidInput, Recipe, Session, WaitStrategy};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions, SingleNodeLock};
use zookeeper_recipes_rwlock::{RwLock, RwLockOptions};

/// How often a contender looks that waits by looking.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// One way to wait.
#[derive(Clone, Copy)]
pub struct Way {
    /// What it is called.
    pub name: &'static str,
    /// Whom a contender wakes that comes or goes.
    pub wakes: Wakes,
    /// How a queue waits, if the way has one.
    queue: Option<InQueue>,
}

/// How the contenders of a queue wait.
#[derive(Clone, Copy)]
struct InQueue {
    strategy: WaitStrategy,
    marks_release: bool,
}

/// Whom a contender wakes that comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakes {
    /// Nobody: the others look from time to time.
    Nobody,
    /// Everybody who waits.
    Everybody,
    /// Who comes wakes nobody, and who goes only those whose turn may have come.
    WhomItConcerns,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An exclusive lock.
    Lock,
    /// A read/write lock.
    RwLock,
}

impl InQueue {
    const fn new(strategy: WaitStrategy, marks_release: bool) -> InQueue {
        InQueue {
            strategy,
            marks_release,
        }
    }
}

impl Way {
    /// All of them, those that cost most first.
    pub const ALL: [Way; 5] = [
        Way::new("single node", Wakes::Everybody, None),
        Way::new(
            "poll",
            Wakes::Nobody,
            Some(InQueue::new(WaitStrategy::Poll(POLL_INTERVAL), false)),
        ),
        Way::new(
            "parent",
            Wakes::Everybody,
            Some(InQueue::new(WaitStrategy::Parent, false)),
        ),
        Way::new(
            "predecessor (list on wake)",
            Wakes::WhomItConcerns,
            Some(InQueue::new(WaitStrategy::Predecessor, false)),
        ),
        Way::new(
            "predecessor (no read)",
            Wakes::WhomItConcerns,
            Some(InQueue::new(WaitStrategy::Predecessor, true)),
        ),
    ];

    const fn new(name: &'static str, wakes: Wakes, queue: Option<InQueue>) -> Way {
        Way { name, wakes, queue }
    }

    /// Whether it has a queue, so that who came first holds first.
    pub fn has_queue(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether there is such a lock with this way to wait.
    pub fn fits(&self, subject: Subject) -> bool {
        self.has_queue() || subject == Subject::Lock
    }

    /// The lock of one contender, who is `name`d so to the others; as a writer or as a reader. An
    /// exclusive lock knows writers only.
    ///
    /// # Errors
    ///
    /// When the path can be no lock's.
    pub fn recipe(
        &self,
        subject: Subject,
        session: &Session,
        path: &str,
        name: &str,
        writes: bool,
    ) -> Result<Box<dyn Recipe>, InvalidInput> {
        let Some(queue) = self.queue else {
            return Ok(Box::new(SingleNodeLock::new(session, path)?));
        };
        Ok(match subject {
            Subject::Lock => {
                let options = LockOptions::new()
                    .data(name)
                    .strategy(queue.strategy)
                    .mark_release(queue.marks_release);
                Box::new(ExclusiveLock::with_options(session, path, options)?)
            }
            Subject::RwLock => {
                let options = RwLockOptions::new()
                    .data(name)
                    .strategy(queue.strategy)
                    .mark_release(queue.marks_release);
                let lock = RwLock::with_options(session, path, options)?;
                match writes {
                    true => Box::new(lock.write().clone()),
                    false => Box::new(lock.read().clone()),
                }
            }
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Subject::Lock => "exclusive lock",
            Subject::RwLock => "read/write lock",
        })
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
