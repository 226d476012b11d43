//! Jepsen's workload for locks: a set that a lock guards, under pauses and partitions.
//!
//! `cargo xtask jepsen` installs what it needs and runs it, on Linux as root.
//!
//! Each client is a process of its own. A turn of a client acquires the lock, reads the set, works
//! for some milliseconds, and writes the set back with one more element. If two clients are in their
//! turns together, one of them overwrites the elements of the other.
//!
//! The program keeps three sets, and each turn writes to all three. So the same faults meet three
//! ways to write:
//!
//! | set | what a client does before the write | what the store refuses |
//! |---|---|---|
//! | [unchecked](Way::Unchecked) | nothing | nothing |
//! | [checked](Way::Checked) | asks its library whether it still holds, and withholds the write if not | nothing |
//! | [fenced](Way::Fenced) | sends the token with the read and with the write | a token older than the newest one that it has seen |
//!
//! An element is *lost* if the store acknowledged its write, and the set does not contain it in the
//! end: [`check`].
//!
//! The look at the lock is wrong if it began after a newer holder had acquired the lock, and the
//! library said that the lock was held: [`judge_looks`]. A run fails if a look of ours is wrong.
//! Without a wrong look, a checked write is late only by a pause or a delay after the look.

mod checker;
mod looks;
mod store;

pub use checker::{Attempt, Look, Outcome, Verdict, Way, check, is_in_order};
pub use looks::{Looks, first_newer, judge_looks};
pub use store::{Read, Store};

#[cfg(test)]
#[path = "../tests/unit/checker.rs"]
mod tests;
