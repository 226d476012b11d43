//! What the threads of a process share, under random schedules of shuttle.
//!
//! `core` and `connection` below this folder compile the sources of the library that ships. Their
//! mutexes, channels and tasks are those of [shuttle], which decides at each use of one of them
//! which thread runs next. The clock stands still: see the package `tokio` below this folder. A
//! schedule in which no thread can run is a failure.

pub mod queue;

mod server;
mod wire;
mod znodes;

pub use server::Server;
pub use wire::Wire;

use std::env;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, Runner};

/// How many changes of the order of the threads a schedule of PCT has at most.
const DEPTH: usize = 3;

/// Runs a test under this many random schedules, and as many of [PCT][pct].
///
/// `SHUTTLE_SCHEDULES` replaces the number. A failure prints its schedule, which
/// `SHUTTLE_SCHEDULE` repeats.
///
/// # Panics
///
/// As the test does, and if a schedule comes to a point where no thread can run.
///
/// [pct]: https://www.microsoft.com/en-us/research/publication/a-randomized-scheduler-with-probabilistic-guarantees-of-finding-bugs/
pub fn check(schedules: usize, test: impl Fn() + Send + Sync + 'static + Copy) {
    if let Ok(schedule) = env::var("SHUTTLE_SCHEDULE") {
        return shuttle::replay(test, &schedule);
    }
    let asked = env::var("SHUTTLE_SCHEDULES").ok();
    let asked = asked.and_then(|asked| asked.parse().ok());
    let schedules = asked.unwrap_or(schedules);
    let mut config = Config::new();
    // The futures of an acquisition are large without optimisation.
    config.stack_size = 1 << 20;
    config.failure_persistence = FailurePersistence::Print;
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(test);
    Runner::new(PctScheduler::new(DEPTH, schedules), config).run(test);
}
