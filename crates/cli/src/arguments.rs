//! The command line.

use clap::Parser;

use crate::connecting::Connection;
use crate::exit;
use crate::verbs::Verb;

/// Locks, semaphores and leader election on ZooKeeper, for shells and operators.
#[derive(Debug, Parser)]
#[command(name = "zkr", version, after_help = exit::HELP, after_long_help = exit::HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) connection: Connection,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}
