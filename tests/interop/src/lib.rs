//! Interoperability: what the tests need to run the recipes beside Apache Curator and kazoo.
//!
//! Contenders in three languages (`src/bin/contender.rs`, `java/Contender.java`,
//! `python/contender.py`) take the same arguments and tell a [`Referee`] when they go in and when
//! they come out. A [`Judge`] decides whether that was right, and the tests
//! read its [`Report`]. What runs a program in Java or Python with such a library, where the
//! machine has it, is a [`Program`].
//!
//! # What a contender is told
//!
//! ```text
//! contender <connect string> <path> <referee's address> <session timeout, ms> <turns> <stay, ms> <mode>:<count>...
//! ```
//!
//! Each of the contenders has a session of its own and a connection to the referee of its own. It
//! is named `<language>-<mode>-<number>`, and that name is the data of its znode. The process ends
//! after the last turn of the last contender, with an error if any of them failed; or when its
//! standard input ends, so that it never outlives the test. Between two turns contender `n` pauses
//! for `(7 n + 13 turn) mod 40` ms: a queue that all return to at once keeps the same order for
//! ever.
//!
//! # What it tells the referee
//!
//! A line each, each answered by a line:
//!
//! | line | when |
//! |---|---|
//! | `ready <name>` | before the first turn; answered when all expected contenders are ready |
//! | `enter <name> exclusive\|shared <znode>` | after the acquisition |
//! | `sees <name> <contender>...` | inside, in every fifth turn from the first on: the contenders it lists |
//! | `downgrade <name>` | before its write lock becomes a read lock |
//! | `leave <name>` | before the release |

mod judge;
mod program;
mod referee;
mod suite;
mod task;

pub use judge::{Entry, Judge, Kind, Report};
pub use program::{Program, ProgramError};
pub use referee::{Conversation, Referee};
pub use suite::can_run;
pub use task::Task;

/// The variable of the environment that puts our contenders over the client of the crate
/// `zookeeper-client`. Their names begin with `adapter-`.
pub const OVER_THE_ADAPTER: &str = "CONTENDERS_OVER_THE_ADAPTER";
