//! The same work by these recipes, by Apache Curator, by kazoo, and by the lock of
//! `zookeeper-client`.
//!
//! Each is at work in a process of its own, over its own sessions to the same server: ours and the
//! client's in this program again ([`work`]), Curator in `java/CuratorPeer.java`, kazoo in
//! `python/kazoo_peer.py`. They are told what to do on their standard input, a line each, and say
//! on their standard output what came of it. They measure themselves, by their own monotonic
//! clocks, so that nothing of that conversation is in the figures.
//!
//! ```text
//! <program> <connect string> <session timeout, ms>
//! ```
//!
//! | line | answer |
//! |---|---|
//! | at the start | `ready <name and version>` |
//! | `run <work> <path> <size> <ms>` | `done <nanoseconds> <turns>` |
//! | `queue <work> <path> <waiters>` | `queued`, once they have begun to wait |
//! | `release` | `done <nanoseconds> <waiters>` |
//! | `memory` | `memory <bytes>` in use on a heap of fixed size, after a collection; 0 where there is none such |
//!
//! `run` lets contenders take turns, each of which is an acquisition and the release of it, one
//! after the other without rest. Each contender is a thread, or a task. Once each has had a turn,
//! the turns of all of them are counted for that long.
//!
//! | work | contenders |
//! |---|---|
//! | `lock`, `read`, `write`, `semaphore` | one; of the semaphore it wants one of 5 permits |
//! | `try` | one, which tries for a lock that another session holds |
//! | `contended` | so many for one lock, each in a session of its own |
//! | `many` | so many in one session, each for a lock of its own |
//! | `tasks` | so many in one session for one lock, in the way that is fastest with the library |
//!
//! `queue` lets a holder acquire, unless one does already, and so many others wait for it to go:
//! with `readers` a writer, and readers behind it, each in a session of its own; with `waiters` the
//! holder of a lock in one session, and contenders in four others. `release` lets the writer go; it
//! is answered when all readers have held at the same time and let go, with how long it took from
//! the call of the release until the last of them held.
//!
//! The end of the input is the end of the process.

mod bench;
mod client;
mod driver;
mod figures;
mod library;
mod ours;
mod peer;
mod row;
mod summary;
mod target;

pub use bench::{Options, run};
pub use library::work;
pub use peer::Rust;
pub use row::Row;
