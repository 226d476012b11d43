//! What the threads of a process share, under random schedules of shuttle.
//!
//! `core` and `connection` below this folder compile the sources of the library that ships. Their
//! mutexes, channels and tasks are those of [shuttle], which decides at each use of one of them
//! which thread runs next. The clock stands still: see the package `tokio` below this folder. A
//! schedule in which no thread can run is a failure.

pub mod queue;

// The peer of the connection's own tests.
#[allow(missing_docs)]
#[path = "../../../crates/testkit/src/fake.rs"]
pub mod fake;
#[allow(dead_code)]
#[path = "../../../crates/connection/tests/connection/peer.rs"]
mod peer;
mod server;
mod wire;
mod znodes;

pub use server::Server;
pub use wire::Wire;

use std::env;

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler};
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
/// As the test does, if a schedule comes to a point where no thread can run, and if a variable has
/// another form.
///
/// [pct]: https://www.microsoft.com/en-us/research/publication/a-randomized-scheduler-with-probabilistic-guarantees-of-finding-bugs/
pub fn check(schedules: usize, test: impl Fn() + Send + Sync + 'static + Copy) {
    let mut config = Config::new();
    // The futures of an acquisition are large without optimisation.
    config.stack_size = 1 << 20;
    config.failure_persistence = FailurePersistence::Print;
    if let Ok(schedule) = env::var("SHUTTLE_SCHEDULE") {
        let replay = ReplayScheduler::new_from_encoded(&schedule);
        Runner::new(replay, config).run(test);
        return;
    }
    let schedules = match env::var("SHUTTLE_SCHEDULES") {
        Ok(asked) => asked.parse().expect("SHUTTLE_SCHEDULES is a number"),
        Err(_) => schedules,
    };
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(test);
    Runner::new(PctScheduler::new(DEPTH, schedules), config).run(test);
}
