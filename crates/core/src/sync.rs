//! Mutexes, the outputs of futures, and work that several tasks wait for.
//!
//! An `async fn` keeps two copies of a future that it is given. So such a function takes the future
//! pinned, or returns `impl Future`.

#[cfg(on_shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;
#[cfg(not(on_shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard};

use futures_util::future::{BoxFuture, FutureExt, Shared, WeakShared};

/// Locks a mutex, even if another task has panicked with it locked.
///
/// No code in this crate leaves the value half changed, so the value is sound after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of a future that is ready now.
///
/// The future is polled without tokio's cooperative budget. To a task whose budget is spent, tokio
/// shows no channel as ready.
pub(crate) fn ready_now<F: Future>(future: F) -> Option<F::Output> {
    tokio::task::unconstrained(future).now_or_never()
}

/// The output of this future. If there is none, this future never resolves.
pub(crate) async fn or_pending<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Work that several callers wait for. It is dropped with the last of them.
///
/// Each caller polls the work, so that none waits for a caller that nobody polls.
#[derive(Debug)]
pub(crate) struct SharedWork<T>(Mutex<Option<WeakShared<Work<T>>>>);

type Work<T> = BoxFuture<'static, T>;

impl<T> Default for SharedWork<T> {
    fn default() -> SharedWork<T> {
        SharedWork(Mutex::new(None))
    }
}

impl<T: Clone> SharedWork<T> {
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

#[cfg(test)]
#[path = "../tests/unit/sync.rs"]
mod tests;
