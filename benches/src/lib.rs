//! What the benches of the recipes share: a server of their own, and ways to measure.
//!
//! `cargo bench -p zookeeper-recipes-benches` runs them all, with `--bench handoff` one of them.
//! `cargo test -p zookeeper-recipes-benches --benches` runs each once, to see that it works, and
//! measures nothing.
//!
//! Each bench starts one ZooKeeper server ([`Testbed::start`]) and measures what a client sees of
//! it over loopback. Nothing there waits for a disk or a network, so that what the client itself
//! costs shows as plainly as it can; and client and server share the machine's processors. Read
//! the figures of one run as ratios to each other.

mod contention;
pub mod crowd;
pub mod measure;
mod overhead;
pub mod passing;
pub mod progress;
mod raw;
pub mod report;
mod spread;
mod testbed;
mod uncontended;
pub mod way;
pub mod wire;

pub use contention::Contention;
pub use overhead::Overhead;
pub use spread::Spread;
pub use testbed::{SESSION_TIMEOUT, Testbed};
pub use uncontended::{Comparison, Work};

/// Runs benches as the command line tells criterion to.
pub fn run_benches(benches: &[fn(&mut criterion::Criterion)]) {
    let mut criterion = criterion::Criterion::default().configure_from_args();
    for bench in benches {
        bench(&mut criterion);
    }
    criterion.final_summary();
}

/// Whether this is a bench that measures, and no test of one.
pub fn measures() -> bool {
    // What cargo bench says to its programs, and cargo test does not.
    std::env::args().any(|argument| argument == "--bench")
}
