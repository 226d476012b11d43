//! The same work by these recipes, by Apache Curator, by kazoo, and by the lock of
//! `zookeeper-client`.
//!
//! `cargo xtask bench peers` installs what it needs and runs it.
//!
//! Each library works in a process of its own, over its own sessions to the same server: ours and
//! the client's in this program again (`worker`), Curator in `java/CuratorPeer.java`, kazoo in
//! `python/kazoo_peer.py`. Each process reads orders from its standard input, a line each, and
//! writes an answer to its standard output. Each process measures itself, by its own monotonic
//! clock, so that the conversation is not in the figures.
//!
//! ```text
//! <program> <connect string> <session timeout, ms>
//! ```
//!
//! | line | answer |
//! |---|---|
//! | at the start | `ready <name and version>` |
//! | `run <work> <path> <size> <ms>` | `done <nanoseconds> <turns> <all turns> <switches> <µs>,...` |
//! | `queue <work> <path> <waiters>` | `queued`, once they have begun to wait |
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
//! | `dropped` | one for a lock, which leaves the release to the background |
//! | `try` | one, which tries for a lock that another session holds |
//! | `contended` | `size` for one lock, each in a session of its own |
//! | `many` | `size` in one session, each for a lock of its own |
//! | `tasks` | `size` in one session for one lock, in the fastest way that the library has |
//!
//! `queue` lets a holder acquire, unless there is one, and adds waiters behind it. With `readers`
//! the holder is a writer, and the waiters are readers, each in a session of its own. With
//! `waiters` the holder has a lock in one session, and the waiters share four other sessions.
//! `release` lets the writer release. It is answered when all readers have held at the same time
//! and released, with the time from the call of the release until the last of them held.
//!
//! The end of the input is the end of the process.

mod bench;
mod client;
mod driver;
mod figures;
mod library;
mod memory;
#[cfg(target_os = "linux")]
mod network;
mod ours;
mod packets;
mod peer;
mod place;
mod plan;
mod processor;
mod row;
mod summary;
mod target;
mod worker;

use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::peer::Rust;
use crate::plan::Options;

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
    /// Be one of the libraries at work, by the orders on the standard input.
    #[command(hide = true)]
    Work {
        library: Rust,
        connect_string: String,
        /// In milliseconds.
        session_timeout: u64,
    },

    /// The same work over a network that this machine makes for itself. Wants Linux and root.
    #[cfg(target_os = "linux")]
    Network {
        #[command(flatten)]
        options: Options,

        /// This process is in a network namespace of its own.
        #[arg(long, hide = true)]
        inside: bool,
    },

    /// Print how long it takes to connect to a server, and what an uncontended lock must send to
    /// it takes over a bare socket.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Connect { address: String },
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match arguments.role {
        Some(Role::Work {
            library,
            connect_string,
            session_timeout,
        }) => worker::work(
            library,
            &connect_string,
            Duration::from_millis(session_timeout),
        ),
        #[cfg(target_os = "linux")]
        Some(Role::Network { options, inside }) => match inside {
            true => network::run(&options),
            false => network::enter(),
        },
        #[cfg(target_os = "linux")]
        Some(Role::Connect { address }) => network::connect(&address),
        None => bench::run(&arguments.options),
    }
}
