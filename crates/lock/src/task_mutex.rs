//! A mutex of the tasks of a process over one hold of a lock.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;
use zookeeper_recipes_core::{Error, Hold};

use crate::recipe::ExclusiveLock;

/// A mutex of the tasks of a process, over one hold of an [`ExclusiveLock`].
///
/// The first task acquires the lock. Its [`TaskGuard`] goes to the next waiting task without a
/// request, first in, first out. The process releases the lock at once if no task waits. For the
/// other processes it also releases the lock after 100 passes from task to task, by default, and
/// with the first guard that ends a second after the lock was acquired. Clones are one mutex.
///
/// # One token
///
/// The turns of one hold share its znode and its [token](crate::FencingToken), so neither a store
/// nor a [guarded write](crate::HoldView::transaction) distinguishes the tasks. That matters if a
/// write can be under way when its task ends its guard, for example because its future was dropped:
/// for such writes use the [`ExclusiveLock`], which gives each task a hold of its own.
///
/// The guard is the hold: its task learns of the loss as of any other. The next task acquires the
/// lock again. A task that keeps its guard after the loss keeps the other tasks of its process
/// waiting, and no other process.
///
/// # Views
///
/// A [view](Hold::view) ends with the turn in which it was taken. So a hold with a view that is left
/// at the end of the turn does not pass on: it is released, and the next task acquires the lock.
///
/// ```
/// # use zookeeper_recipes_lock::{Error, ExclusiveLock, TaskMutex};
/// # async fn example(lock: ExclusiveLock) -> Result<(), Error> {
/// TaskMutex::new(lock).acquire().await?.release().await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TaskMutex(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    lock: ExclusiveLock,
    passes: u32,
    time: Duration,
    /// The hold, while it passes from one task to the next. Each waiter and each guard has a clone.
    kept: Arc<Mutex<Option<Kept>>>,
}

/// A hold of the process, and its limits.
#[derive(Debug)]
struct Kept {
    hold: Hold,
    passes_left: u32,
    until: Option<Instant>,
}

/// The hold of a process, for one of its tasks. A drop ends the turn, without a wait for an answer.
#[derive(Debug)]
#[must_use = "if unused, the turn is over at once"]
pub struct TaskGuard {
    kept: Option<Kept>,
    slot: OwnedMutexGuard<Option<Kept>>,
    /// Dropped last.
    _user: User,
}

/// A task that waits or has a guard. The last one releases a hold whose waiter has given up.
#[derive(Debug)]
struct User(Arc<Shared>);

impl TaskMutex {
    /// A mutex over this lock, with the default limits. The call sends nothing.
    pub fn new(lock: ExclusiveLock) -> TaskMutex {
        TaskMutex::with_limits(lock, 100, Duration::from_secs(1))
    }

    /// A mutex whose holds pass at most so often, and for so long. With a limit of zero each task
    /// acquires the lock. The call sends nothing.
    pub fn with_limits(lock: ExclusiveLock, passes: u32, time: Duration) -> TaskMutex {
        TaskMutex(Arc::new(Shared {
            lock,
            passes,
            time,
            kept: Arc::default(),
        }))
    }

    /// The lock. Tasks that acquire it directly compete with the mutex.
    pub fn lock(&self) -> &ExclusiveLock {
        &self.0.lock
    }

    /// True if this is the only clone, and no task waits or has a guard or the lock.
    pub(crate) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.lock.is_idle()
    }

    /// Waits for the turn of this task. 0 requests if a task of the process passes its hold on;
    /// otherwise those of [`ExclusiveLock::acquire`], with its errors.
    ///
    /// Cancel safe: if the future is dropped, its turn goes to the next task. Once its turn has
    /// come, it has the lock: poll it or drop it.
    pub async fn acquire(&self) -> Result<TaskGuard, Error> {
        let user = User(self.0.clone());
        let mut slot = self.0.kept.clone().lock_owned().await;
        let kept = match slot.take().filter(Kept::lasts) {
            Some(kept) => kept,
            None => Kept::new(self.0.lock.acquire().await?, &self.0),
        };
        Ok(TaskGuard::new(kept, slot, user))
    }

    /// Takes the turn if no task has it and the lock is free; otherwise `None`.
    ///
    /// The costs, errors and cancel safety are those of [`ExclusiveLock::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Option<TaskGuard>, Error> {
        let user = User(self.0.clone());
        let slot = self.0.kept.clone().try_lock_owned();
        let Ok(mut slot) = slot else { return Ok(None) };
        drop(slot.take());
        let hold = self.0.lock.try_acquire().await?;
        let kept = hold.map(|hold| Kept::new(hold, &self.0));
        Ok(kept.map(|kept| TaskGuard::new(kept, slot, user)))
    }
}

impl Kept {
    fn new(hold: Hold, shared: &Shared) -> Kept {
        Kept {
            hold,
            passes_left: shared.passes,
            until: Instant::now().checked_add(shared.time),
        }
    }

    fn lasts(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until) && self.hold.is_held()
    }
}

impl TaskGuard {
    fn new(kept: Kept, slot: OwnedMutexGuard<Option<Kept>>, user: User) -> TaskGuard {
        TaskGuard {
            kept: Some(kept),
            slot,
            _user: user,
        }
    }

    /// Ends the turn: the hold goes to the next task, or is released.
    ///
    /// The costs, errors and cancel safety are those of [`Hold::release`]. A pass costs 0 requests.
    pub async fn release(mut self) -> Result<(), Error> {
        let hold = self.pass_on();
        drop(self);
        let Some(hold) = hold else { return Ok(()) };
        hold.release().await
    }

    /// Leaves the hold to the next task, or returns it to be released.
    fn pass_on(&mut self) -> Option<Hold> {
        let mut kept = self.kept.take()?;
        // More than the mutex itself and this guard.
        let is_awaited = Arc::strong_count(OwnedMutexGuard::mutex(&self.slot)) > 2;
        // A view would say in the turn of another task that the recipe is held.
        let may_pass = kept.passes_left > 0 && kept.lasts() && !kept.hold.is_viewed();
        if !is_awaited || !may_pass {
            return Some(kept.hold);
        }
        kept.passes_left -= 1;
        *self.slot = Some(kept);
        None
    }
}

impl Deref for TaskGuard {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        let kept = self.kept.as_ref();
        &kept.expect("a guard in use has not ended").hold
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        // The deletion of a hold is sent before the next task acquires.
        drop(self.pass_on());
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Of two users that end at once, one sees that the other has gone, or finds the mutex free.
        fence(Ordering::SeqCst);
        if Arc::strong_count(&self.0.kept) == 1 {
            drop(self.0.kept.try_lock().map(|mut slot| slot.take()));
        }
    }
}
