//! How many partitions move at once, by how quickly the servers answer.

use std::time::Duration;

/// So many partitions may move at once in any assignment, and at first.
const FIRST: usize = 32;

/// In a large assignment, one of so many partitions may move at once.
const PART: usize = 100;

/// The servers are slow if a transaction takes longer than this part of the session timeout.
const PART_OF_TIMEOUT: u32 = 20;

/// The number of moves that may be under way, as the congestion window of TCP. The load on the
/// servers is at most twice the load at which they became slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    size: usize,
    /// True if moves waited for their turn at the last look.
    was_full: bool,
}

impl Default for Window {
    fn default() -> Window {
        Window {
            size: FIRST,
            was_full: false,
        }
    }
}

impl Window {
    /// Counts moves that have ended since the last look. Returns how many may be under way now.
    pub(crate) fn ended(&mut self, moves: usize, partitions: usize, max_moves: usize) -> usize {
        if self.was_full {
            self.size += moves;
        }
        self.size = self.size.min(FIRST.max(partitions / PART)).min(max_moves);
        self.size
    }

    /// Notes how many moves wait for their turn, and the longest time that a write took.
    pub(crate) fn written(&mut self, deferred: usize, took: Duration, timeout: Duration) {
        self.was_full = deferred > 0;
        if took > timeout / PART_OF_TIMEOUT {
            self.size = (self.size / 2).max(1);
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/window.rs"]
mod tests;
