//! Locks of this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock whose holders never leave it half changed, so that another task's panic is no
/// reason to panic here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
