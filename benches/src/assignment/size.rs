//! How much there is to assign, and how long it may take.

use std::fmt;
use std::time::Duration;

/// The number of partitions, and of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) partitions: usize,
    pub(crate) workers: usize,
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size {
            partitions,
            workers,
        } = self;
        write!(formatter, "{partitions} partitions, {workers} workers")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) session_timeout: Duration,
    /// How long the sessions are left alone at the end of a phase.
    pub(crate) rest: Duration,
}
