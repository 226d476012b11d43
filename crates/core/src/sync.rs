//! Mutexes of this process, and work that several tasks wait for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, FutureExt, Shared, WeakShared};

/// Locks a mutex, also if another task has panicked with it locked.
///
/// No code in this crate leaves the value half changed, so the value is sound after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The work that is under way, if there is any. Only its callers keep it.
///
/// Each caller polls the work. So no caller waits for another caller, which nobody may poll.
#[derive(Debug)]
pub(crate) struct UnderWay<T>(Mutex<Option<WeakShared<Work<T>>>>);

type Work<T> = BoxFuture<'static, T>;

impl<T> Default for UnderWay<T> {
    fn default() -> UnderWay<T> {
        UnderWay(Mutex::new(None))
    }
}

impl<T: Clone> UnderWay<T> {
    /// The work that is under way, or new work.
    pub(crate) fn join(&self, begin: impl FnOnce() -> Work<T>) -> Shared<Work<T>> {
        let mut work = lock(&self.0);
        let kept = work.as_ref().and_then(WeakShared::upgrade);
        let is_under_way = |work: &Shared<Work<T>>| work.peek().is_none();
        kept.filter(is_under_way).unwrap_or_else(|| {
            let begun = begin().shared();
            *work = begun.downgrade();
            begun
        })
    }
}
