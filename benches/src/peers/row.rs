//! The rows of the comparison.

use clap::ValueEnum;
use zookeeper_recipes_benches::report::help;

/// Work that is measured. The documentation of each row is its title in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Row {
    /// lock, uncontended
    Lock,
    /// lock made anew each time, uncontended
    Fresh,
    /// read lock, uncontended
    Read,
    /// write lock, uncontended
    Write,
    /// semaphore of 5, uncontended
    Semaphore,
    /// lock, uncontended, release not awaited
    Dropped,
    /// failed try
    Try,
    /// lock, 2 sessions contend
    #[value(name = "contended-2")]
    Contended2,
    /// lock, 10 sessions contend
    #[value(name = "contended-10")]
    Contended10,
    /// lock, 100 sessions contend
    #[value(name = "contended-100")]
    Contended100,
    /// 50 readers behind a writer, until all hold
    Readers,
    /// 200 locks over one session
    Many,
    /// 100 tasks of one process on one lock
    Tasks,
    /// 100 tasks of one process that share one hold
    Mutex,
    /// memory of a waiter
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// By the turns in a given time.
    Turns {
        /// The name of the work in the conversation with a program.
        work: &'static str,
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

    pub(crate) fn title(self) -> String {
        help(&self)
    }

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
            Row::Fresh => turns("fresh", 1),
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
            Row::Mutex => turns("mutex", 100),
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
