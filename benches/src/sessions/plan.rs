//! What the fleet does.

use std::time::Duration;

/// How many sessions there are, and what they do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) sessions: usize,
    /// The locks that each session holds.
    pub(crate) locks: usize,
    pub(crate) time: Duration,
}
