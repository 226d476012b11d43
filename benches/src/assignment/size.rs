//! How much there is to assign.

use std::fmt;

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
