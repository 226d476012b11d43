//! Work with processes, some at a time.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Does this work with each item, so many at a time, and returns all complaints.
pub(crate) fn complaints<T: Send>(
    at_a_time: usize,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Option<String> + Sync,
) -> Vec<String> {
    let waiting = Mutex::new(items.into_iter().collect::<VecDeque<_>>());
    let complaints = Mutex::new(Vec::new());
    let next = || lock(&waiting).pop_front();
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let complaint = work(item);
                    lock(&complaints).extend(complaint);
                }
            });
        }
    });
    complaints
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
