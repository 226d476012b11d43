//! Interoperability: what the tests need to run the recipes beside Apache Curator and kazoo.
//!
//! A [`Program`] runs Apache Curator (`java`) or kazoo (`python/peer.py`), if the machine has that
//! library. There is one program in each language, for all tests and benches. Contenders of all
//! libraries, ours in `src/bin/contender.rs`, report to a [`Referee`] when they go in and when they
//! come out. The referee gives what they report to a
//! [`History`](zookeeper_recipes_testkit::history::History), and the tests read its [`Report`].
//!
//! # The arguments of a program, and its lines
//!
//! ```text
//! <program> <connect string> <session timeout, ms> <role> <arguments of the role>...
//! ```
//!
//! | role, with its arguments | does | of |
//! |---|---|---|
//! | `contend <path> <referee's address> <turns> <stay, ms> <mode>:<count>...` | contenders that report to a referee | Curator, kazoo, ours |
//! | `work` | contenders that take turns, and a queue behind a holder, by the orders below | Curator, kazoo, `bench peers` |
//! | `fleet <sessions> <locks> <contenders of a lock>` | many sessions, by the orders below | Curator |
//! | `partition <partitions> <number>` | a worker of a `SetPartitioner`, which joins after a line and prints `owns <partition>...` at each change | kazoo |
//! | `set <path>` | a client of a set that a lock guards (`tests/jepsen`) | Curator, kazoo |
//!
//! A program in any role but `contend` and `set` is a [`Peer`]: it prints `ready <name and version>`,
//! then reads orders from its standard input, and prints an answer to each. It measures itself by
//! its own monotonic clock, so that the conversation is in no figure. The end of its input is the
//! end of the program. A failure is, too.
//!
//! | order to `work` | answer |
//! |---|---|
//! | `run <work> <path> <size> <ms>` | `done <nanoseconds> <turns> <all turns> <switches> <µs>,...` |
//! | `queue <work> <path> <waiters>` | `queued`, once they have begun to wait |
//! | `nest <path> <path>` | `holds`, once it has the first lock, and `nested`, once it has had the second and released both |
//! | `release` | `done <nanoseconds> <waiters> <waiters>` |
//! | `memory` | `memory <bytes>` in use on a heap of fixed size, after a collection; 0 if there is no such heap |
//!
//! `run` lets contenders take turns without rest. A turn is an acquisition and its release. Each
//! contender is a thread or a task. Once each contender has had a turn, the turns of all of them
//! are counted for the given time. "All turns" includes the turns before and after that time. The
//! switches are the voluntary ones of the process in that time. The last word is how long each turn
//! took that began after the contender's first turn and ended within that time.
//!
//! | work | contenders |
//! |---|---|
//! | `lock`, `read`, `write`, `semaphore` | one; of the semaphore it wants one of 5 permits |
//! | `fresh` | one, which makes the lock anew for each turn |
//! | `dropped` | one for a lock, which leaves the release to the background; of libraries in Rust |
//! | `try` | one, which tries for a lock that another session holds |
//! | `contended` | `size` for one lock, each in a session of its own |
//! | `many` | `size` in one session, each for a lock of its own |
//! | `tasks` | `size` in one session for one lock, each turn with a hold of its own |
//! | `mutex` | `size` in one session for one lock, in the fastest way that the library has |
//!
//! `queue` lets a holder acquire, unless there is one, and adds waiters behind it. With `readers`
//! the holder is a writer, and the waiters are readers, each in a session of its own. With
//! `waiters` the holder has a lock in one session, and the waiters share four other sessions.
//! `release` lets the writer release. It is answered when all readers have held at the same time
//! and released, with the time from the call of the release until the last of them held.
//!
//! | order to `fleet`, whose contenders hand locks on from the start | answer |
//! |---|---|
//! | `take` | `taken` and the microseconds of each handoff since the last call |
//! | `held` | `held` and the locks of the sessions that Curator has not reported as lost |
//! | `died` | `noted`; each session then acquires a lock that nobody has used before |
//! | `outcome` | `outcome`, and separated by semicolons: when each of these locks worked, the longest gap of each lock that is handed on, and the calls that failed |
//! | `end` | `ended` |
//!
//! # A contender
//!
//! Each contender has a session of its own and a connection to the referee of its own. Its name is
//! `<language>-<mode>-<number>`, and that name is the data of its znode. The process ends after the
//! last turn of the last contender. Between two turns contender `n` pauses for
//! `(7 n + 13 turn) mod 40` ms: a queue that all return to at once keeps the same order for ever.
//!
//! It reports lines, each of which the referee answers by a line:
//!
//! | line | when |
//! |---|---|
//! | `ready <name>` | before the first turn; answered when all expected contenders are ready |
//! | `enter <name> exclusive\|shared <znode>` | after the acquisition |
//! | `sees <name> <contender>...` | inside, in every fifth turn from the first on: the contenders it lists |
//! | `downgrade <name>` | before its write lock becomes a read lock |
//! | `leave <name>` | before the release |
//!
//! Workers, which may be killed and stopped (`tests/soak`), report what they own: a recipe, or a
//! partition of an assignment.
//!
//! | line | when |
//! |---|---|
//! | `ready <worker>` | at the start |
//! | `own <worker> <resource> <token> <weight> <capacity>` | when its work under a hold begins; all that own the resource at once weigh no more than the capacity |
//! | `works <worker> <resource> <token>` | after a look at the hold, again and again |
//! | `free <worker> <resource>` | when its work ends: before the release, or after the loss |

#![allow(missing_docs, reason = "names that say all stand for themselves")]

mod judge;
mod owners;
mod peer;
mod program;
mod referee;
mod suite;

pub use judge::Report;
pub use peer::Peer;
pub use program::{Program, ProgramError};
pub use referee::{Conversation, Referee};
pub use suite::{can_run, can_run_as_root};

/// The variable of the environment that puts our contenders over the client of the crate
/// `zookeeper-client`. Their names begin with `adapter-`.
pub const OVER_THE_ADAPTER: &str = "CONTENDERS_OVER_THE_ADAPTER";
