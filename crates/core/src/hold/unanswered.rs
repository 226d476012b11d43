//! The guarded writes of one hold that have no answer.

use std::sync::Mutex;

use crate::sync::lock;

/// The guarded writes of one hold that the server has not answered.
///
/// Tasks of one process can hand a znode on. The server cannot tell their holds apart, because a
/// guarded write checks the znode, and the znode stands for the next hold, too. So the process
/// keeps the holds apart: once the next task holds, no write of an earlier hold lands.
///
/// 1. *A write begins here before it is sent.* It counts until its answer comes. A write without
///    an answer counts for good: its future was dropped, its connection broke, or its thread still
///    stands between the two steps.
/// 2. *A hold is handed on only after [`close`](Self::close).* It closes only if no write counts.
///    Then the server has applied or refused every write that has begun.
/// 3. *No write begins after that.* Each step takes the same mutex, so a write begins before the
///    close, and the hold is not handed on, or after it, and the write is refused.
///
/// If the hold cannot be closed, its owner deletes the znode, and the next task enters the queue
/// with a znode of its own. The server then refuses a late write of the earlier hold.
///
/// So the argument needs nothing of the connection: not that requests are sent when they are
/// called, nor that they arrive in order, nor that a broken connection delivers none later. No step
/// waits, and none holds the mutex while it calls anything, so a write may drop its own hold.
#[derive(Debug)]
pub(crate) struct UnansweredWrites {
    /// The number of these writes. `None` once the hold is closed.
    number: Mutex<Option<usize>>,
}

impl UnansweredWrites {
    pub(crate) fn new() -> UnansweredWrites {
        UnansweredWrites {
            number: Mutex::new(Some(0)),
        }
    }

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
mod tests {
    use super::*;

    #[test]
    fn hold_closes_once_each_write_is_answered_and_no_write_begins_then() {
        let writes = UnansweredWrites::new();
        assert!(writes.begin() && writes.begin());
        writes.answered();
        assert!(!writes.close(), "one has no answer");
        assert!(writes.begin(), "it is not closed");
        writes.answered();
        writes.answered();
        assert!(writes.close());
        assert!(!writes.begin());
        assert!(!writes.close(), "it is handed on once");
    }
}
