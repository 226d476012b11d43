//! The processes that run a mutant, some at a time.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::mutant::{Mutant, VARIABLE};
use crate::test::few_threads;

/// How many programs run at the same time. Half of the time they wait for their servers.
const AT_A_TIME: usize = 2;

/// Does something with each of these, [`AT_A_TIME`].
pub(crate) fn at_a_time<'t, T: Sync>(items: &'t [T], work: impl Fn(&'t T) + Sync) {
    let waiting = Mutex::new(items.iter().collect::<VecDeque<_>>());
    let next = || lock(&waiting).pop_front();
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The command with this mutant, or with none.
pub(crate) fn with<'c>(command: &'c mut Command, mutant: Option<&Mutant>) -> &'c mut Command {
    let name = mutant.map_or("", |mutant| &mutant.name);
    few_threads(command).env(VARIABLE, name)
}
