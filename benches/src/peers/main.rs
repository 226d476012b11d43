//! These recipes, Apache Curator, kazoo, and the lock of `zookeeper-client` run the same workloads.
//!
//! `cargo xtask bench peers` installs what it needs and runs it.
//!
//! Each library works in a process of its own, over its own sessions to the same servers, by the
//! orders of [`zookeeper_recipes_interop`]: ours and the client's in this program again (`worker`).

mod bench;
mod client;
mod driver;
mod figures;
mod library;
mod memory;
mod ours;
mod peer;
mod plan;
mod processor;
mod row;
mod summary;
mod worker;

use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::peer::Rust;
use crate::plan::Options;

/// Runs the same workloads with these recipes, Apache Curator, kazoo, and the lock of
/// zookeeper-client, alternating, on the same server.
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
    Be {
        library: Rust,
        connect_string: String,
        /// In milliseconds.
        session_timeout: u64,
        /// `work`. The programs of the other libraries take the same argument.
        role: String,
    },
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match arguments.role {
        Some(Role::Be {
            library,
            connect_string,
            session_timeout,
            ..
        }) => worker::work(
            library,
            &connect_string,
            Duration::from_millis(session_timeout),
        ),
        None => bench::run(&arguments.options),
    }
}
