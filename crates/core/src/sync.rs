//! Mutexes of this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also if another task has panicked with it locked.
///
/// No code in this crate leaves the value half changed, so the value is sound after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
