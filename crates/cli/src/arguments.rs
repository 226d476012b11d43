//! The command line.

use clap::{Parser, Subcommand};

use crate::connecting::Connection;
use crate::exit;
use crate::verbs;

/// Locks, semaphores and leader election on ZooKeeper, for shells and operators.
#[derive(Debug, Parser)]
#[command(name = "zkr", version, after_help = exit::HELP, after_long_help = exit::HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) connection: Connection,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do. Each verb is documented at its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    #[cfg(unix)]
    Lock(verbs::lock::Lock),
    #[cfg(unix)]
    Semaphore(verbs::semaphore::Semaphore),
    #[cfg(unix)]
    Lead(verbs::lead::Lead),
    Who(verbs::who::Who),
    Watch(verbs::watch::Watch),
    Leader(verbs::leader::Leader),
    Evict(verbs::evict::Evict),
    Resize(verbs::resize::Resize),
    Doctor(verbs::doctor::Doctor),
    #[cfg(feature = "dev-server")]
    DevServer(verbs::dev_server::DevServer),
    Completions(verbs::completions::Completions),
    Man(verbs::completions::Man),
}
