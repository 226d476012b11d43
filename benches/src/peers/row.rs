//! The rows of the comparison.

use clap::ValueEnum;

/// Work that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Row {
    /// One contender for a lock.
    Lock,
    /// One contender for a read lock.
    Read,
    /// One contender for a write lock.
    Write,
    /// One contender for one of five permits.
    Semaphore,
    /// One contender for a lock, which leaves the release to the background.
    Dropped,
    /// A try for a lock that another session holds.
    Try,
    /// 2 sessions for one lock.
    #[value(name = "contended-2")]
    Contended2,
    /// 10 sessions for one lock.
    #[value(name = "contended-10")]
    Contended10,
    /// 100 sessions for one lock.
    #[value(name = "contended-100")]
    Contended100,
    /// 50 readers behind a writer, each in a session of its own.
    Readers,
    /// 200 locks over one session.
    Many,
    /// 100 tasks of one process on one lock.
    Tasks,
    /// The memory of a waiter.
    Memory,
}

/// How a row is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// By the turns in a given time.
    Turns {
        /// The name of the work in the conversation with a program.
        work: &'static str,
        /// The number of contenders.
        size: usize,
    },
    /// By the time until all readers hold.
    Readers {
        /// The number of readers.
        readers: usize,
    },
    /// By the growth of the process.
    Memory,
}

impl Row {
    /// All rows.
    pub(crate) fn all() -> &'static [Row] {
        Row::value_variants()
    }

    /// The name in a report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Row::Lock => "lock, uncontended",
            Row::Read => "read lock, uncontended",
            Row::Write => "write lock, uncontended",
            Row::Semaphore => "semaphore of 5, uncontended",
            Row::Dropped => "lock, uncontended, release not awaited",
            Row::Try => "failed try",
            Row::Contended2 => "lock, 2 sessions contend",
            Row::Contended10 => "lock, 10 sessions contend",
            Row::Contended100 => "lock, 100 sessions contend",
            Row::Readers => "50 readers behind a writer, until all hold",
            Row::Many => "200 locks over one session",
            Row::Tasks => "100 tasks of one process on one lock",
            Row::Memory => "memory of a waiter",
        }
    }

    /// The unit of the figures.
    pub(crate) fn unit(self) -> &'static str {
        match self.measure() {
            Measure::Turns { .. } => "1/s",
            Measure::Readers { .. } => "ms",
            Measure::Memory => "bytes",
        }
    }

    /// The name on the command line, in paths and in files.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn measure(self) -> Measure {
        let turns = |work, size| Measure::Turns { work, size };
        match self {
            Row::Lock => turns("lock", 1),
            Row::Read => turns("read", 1),
            Row::Write => turns("write", 1),
            Row::Semaphore => turns("semaphore", 1),
            Row::Dropped => turns("dropped", 1),
            Row::Try => turns("try", 1),
            Row::Contended2 => turns("contended", 2),
            Row::Contended10 => turns("contended", 10),
            Row::Contended100 => turns("contended", 100),
            Row::Readers => Measure::Readers { readers: 50 },
            Row::Many => turns("many", 200),
            Row::Tasks => turns("tasks", 100),
            Row::Memory => Measure::Memory,
        }
    }

    /// How many times better the first figure is than the second.
    pub(crate) fn ratio(self, one: f64, other: f64) -> f64 {
        match self.measure() {
            Measure::Turns { .. } => one / other,
            Measure::Readers { .. } | Measure::Memory => other / one,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_above_one_is_the_better_one() {
        assert_eq!(Row::Lock.ratio(2000.0, 1000.0), 2.0);
        assert_eq!(Row::Readers.ratio(1.0, 2.0), 2.0);
        assert_eq!(Row::Memory.ratio(1000.0, 500.0), 0.5);
    }
}
