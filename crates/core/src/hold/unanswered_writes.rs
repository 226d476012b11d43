//! The guarded writes of a hold that the server has not answered.

use crate::sync::{Mutex, lock};

/// The guarded writes of one hold that the server has not answered.
///
/// Tasks of one process can hand a znode on, and the server cannot distinguish their holds. So the
/// process hands a hold on only after [`close`](Self::close), which needs an answer to every write
/// that has begun, and begins none after it: both take the mutex. A write without an answer is
/// counted until the hold ends: its future was dropped, its connection broke, or its thread has
/// begun it and not sent it yet.
///
/// If the hold cannot be closed, its owner deletes the znode, and the server refuses a late write.
/// [`docs::handoff`](crate::docs::handoff) has the argument. No step calls anything while it holds
/// the mutex, so a write may drop its own hold.
pub(crate) struct UnansweredWrites {
    /// The number of these writes. `None` once the hold is closed.
    number: Mutex<Option<usize>>,
}

impl Default for UnansweredWrites {
    fn default() -> UnansweredWrites {
        let number = Mutex::new(Some(0));
        UnansweredWrites { number }
    }
}

impl UnansweredWrites {
    /// Counts a write that is about to be sent. False if the hold is closed.
    #[must_use = "no write may be sent after the hold is closed"]
    pub(crate) fn begin(&self) -> bool {
        let mut number = lock(&self.number);
        number.as_mut().map(|number| *number += 1).is_some()
    }

    /// Notes that the server has answered a write that has begun.
    pub(crate) fn answered(&self) {
        if let Some(number) = &mut *lock(&self.number) {
            *number -= 1;
        }
    }

    /// Closes the hold for writes. False if there are writes without an answer.
    #[must_use = "a hold that is not closed may not be handed on"]
    pub(crate) fn close(&self) -> bool {
        lock(&self.number).take_if(|number| *number == 0).is_some()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/unanswered_writes.rs"]
mod tests;
