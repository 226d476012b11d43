//! The benches of the recipes: a server of their own, and the ways to measure.
//!
//! | command | what it does |
//! |---|---|
//! | `cargo xtask bench herd`, `peers`, `sessions`, `assignment` | measures, and writes a report |
//! | `cargo xtask demo` | shows a contest for a lock, by each way to wait |
//! | `cargo bench -p zookeeper-recipes-benches` | measures what a turn costs the process of the client |
//!
//! Each bench starts one ZooKeeper server ([`Testbed::start`]) and measures over loopback. No
//! request waits for a disk or a network, so that the cost of the client itself shows. Only
//! `peers --round-trip` and `peers --servers` have a network and disks, and `sessions` has an
//! ensemble of three servers. Client and server share the machine's processors: read the figures
//! of one run as ratios to each other.

#![allow(missing_docs, reason = "names that say all stand for themselves")]

mod bare;
mod median;
pub mod member;
#[cfg(unix)]
pub mod open_files;
mod overhead;
pub mod passing;
pub mod process;
pub mod progress;
pub mod report;
mod testbed;
pub mod threads;
pub mod way;
pub mod wire;

pub use bare::{connection_turns, socket_turns};
pub use median::median;
pub use overhead::{Overhead, Work, turn};
pub use testbed::{SESSION_TIMEOUT, Testbed, as_in_production};
pub use threads::Threads;
