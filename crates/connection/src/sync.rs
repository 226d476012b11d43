//! The mutexes of the crate. `tests/shuttle` compiles it with those of shuttle.

use std::sync::PoisonError;

#[cfg(on_shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};
#[cfg(not(on_shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Locks a mutex, even if another thread has panicked with it locked.
///
/// No code in this crate leaves the value half changed, so the value is sound after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
