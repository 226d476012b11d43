//! Interoperability: what the tests need to run the recipes beside Apache Curator and kazoo.
//!
//! Contenders in three languages (`src/bin/contender.rs`, `java/Contender.java`,
//! `python/contender.py`) take the same arguments and report to a [`Referee`] when they go in and
//! when they come out. The referee gives what they report to a
//! [`History`](zookeeper_recipes_testkit::history::History), and the tests read its [`Report`]. A
//! [`Program`] runs a source in Java or Python with such a library, if the machine has the library.
//!
//! # The arguments of a contender
//!
//! ```text
//! contender <connect string> <path> <referee's address> <session timeout, ms> <turns> <stay, ms> <mode>:<count>...
//! ```
//!
//! Each contender has a session of its own and a connection to the referee of its own. Its name is
//! `<language>-<mode>-<number>`, and that name is the data of its znode. The process ends after the
//! last turn of the last contender, with an error if any of them failed. It also ends when its
//! standard input ends, so that it never outlives the test. Between two turns contender `n` pauses
//! for `(7 n + 13 turn) mod 40` ms: a queue that all return to at once keeps the same order for
//! ever.
//!
//! # What a contender reports
//!
//! Lines, each of which the referee answers by a line:
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

mod judge;
mod owners;
mod program;
mod referee;
mod suite;
mod task;

pub use judge::{Entry, Kind, Report};
pub use program::{Program, ProgramError};
pub use referee::{Conversation, Referee};
pub use suite::{can_run, can_run_as_root};
pub use task::Task;

/// The variable of the environment that puts our contenders over the client of the crate
/// `zookeeper-client`. Their names begin with `adapter-`.
pub const OVER_THE_ADAPTER: &str = "CONTENDERS_OVER_THE_ADAPTER";
