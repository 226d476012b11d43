//! The same work by these recipes, by Apache Curator, by kazoo, and by the lock of
//! `zookeeper-client`.
//!
//! `cargo xtask bench peers` installs what it needs and runs it.
//!
//! Each is at work in a process of its own, over its own sessions to the same server: ours and the
//! client's in this program again (`library`), Curator in `java/CuratorPeer.java`, kazoo in
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
//! | `run <work> <path> <size> <ms>` | `done <nanoseconds> <turns> <all turns>` |
//! | `queue <work> <path> <waiters>` | `queued`, once they have begun to wait |
//! | `release` | `done <nanoseconds> <waiters> <waiters>` |
//! | `memory` | `memory <bytes>` in use on a heap of fixed size, after a collection; 0 where there is none such |
//!
//! `run` lets contenders take turns, each of which is an acquisition and the release of it, one
//! after the other without rest. Each contender is a thread, or a task. Once each has had a turn,
//! the turns of all of them are counted for that long; all turns are those before and after it, too.
//!
//! | work | contenders |
//! |---|---|
//! | `lock`, `read`, `write`, `semaphore` | one; of the semaphore it wants one of 5 permits |
//! | `dropped` | one for a lock, which leaves the release to the background |
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
mod processor;
mod row;
mod summary;
mod target;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::bench::Options;
use crate::peer::Rust;

/// The same work by these recipes, by Apache Curator, by kazoo, and by the lock of
/// zookeeper-client, on the same server, in turns.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench peers")]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Be one of the libraries at work, as the standard input says.
    #[command(hide = true)]
    Work {
        library: Rust,
        connect_string: String,
        /// In milliseconds.
        session_timeout: u64,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.role {
        Some(Role::Work {
            library,
            connect_string,
            session_timeout,
        }) => library::work(
            library,
            &connect_string,
            Duration::from_millis(session_timeout),
        ),
        None => {
            for path in bench::run(&arguments.options)? {
                println!("{}", path.display());
            }
            Ok(())
        }
    }
}
