//! The ways to wait for a lock.

use std::fmt;
use std::time::Duration;

use zookeeper_recipes_core::{InvalidInput, QueueOptions, Recipe, Session, WaitStrategy};
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;

/// How often a contender looks that waits by looking.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// One way to wait.
#[derive(Clone, Copy)]
pub struct Way {
    /// What it is called.
    pub name: &'static str,
    /// Whom a contender wakes that comes or goes.
    pub wakes: Wakes,
    /// What a queue is told, where the way has one.
    queue: Option<fn(QueueOptions) -> QueueOptions>,
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

impl Way {
    /// All of them, those that cost most first.
    pub const ALL: [Way; 5] = [
        Way::new("single node", Wakes::Everybody, None),
        Way::new(
            "poll",
            Wakes::Nobody,
            Some(|options| {
                let options = options.mark_release(false);
                options.strategy(WaitStrategy::Poll(POLL_INTERVAL))
            }),
        ),
        Way::new(
            "parent",
            Wakes::Everybody,
            Some(|options| {
                let options = options.mark_release(false);
                options.strategy(WaitStrategy::Parent)
            }),
        ),
        Way::new(
            "predecessor (list on wake)",
            Wakes::WhomItConcerns,
            Some(|options| options.mark_release(false)),
        ),
        Way::new(
            "predecessor (no read)",
            Wakes::WhomItConcerns,
            Some(|options| options.mark_release(true)),
        ),
    ];

    const fn new(
        name: &'static str,
        wakes: Wakes,
        queue: Option<fn(QueueOptions) -> QueueOptions>,
    ) -> Way {
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
        let options = queue(QueueOptions::new().data(name));
        Ok(match subject {
            Subject::Lock => Box::new(ExclusiveLock::with_options(session, path, options)?),
            Subject::RwLock => {
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
