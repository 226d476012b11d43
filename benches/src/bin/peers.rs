//! The same work by these recipes, by Apache Curator, by kazoo, and by the lock of
//! `zookeeper-client`, on the same server, in turns.

use std::time::Duration;

use clap::{Parser, Subcommand};
use zookeeper_recipes_benches::peers::{Options, Rust, run, work};

/// The same work by these recipes, by Apache Curator, by kazoo, and by the lock of
/// zookeeper-client, on the same server, in turns.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench peers", bin_name = "cargo xtask bench peers")]
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

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match arguments.role {
        Some(Role::Work {
            library,
            connect_string,
            session_timeout,
        }) => work(
            library,
            &connect_string,
            Duration::from_millis(session_timeout),
        ),
        None => {
            for path in run(&arguments.options)? {
                println!("{}", path.display());
            }
            Ok(())
        }
    }
}
