//! The command line.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Args, Command, CommandFactory, Error, FromArgMatches, Parser};

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

impl Arguments {
    /// Reads the command line of this process.
    pub(crate) fn of_this_process() -> Result<Arguments, Error> {
        let mut zkr = Arguments::command();
        let matches = zkr.try_get_matches_from_mut(std::env::args_os())?;
        let arguments = Arguments::from_arg_matches(&matches)?;
        let options = Connection::augment_args(Command::new("zkr"));
        let is_ignored = |id: &str| {
            matches.value_source(id) == Some(ValueSource::CommandLine) && !arguments.verb.uses(id)
        };
        let ignored = options
            .get_arguments()
            .find(|it| is_ignored(it.get_id().as_str()));
        match ignored.and_then(Arg::get_long) {
            None => Ok(arguments),
            Some(option) => {
                let message = format!("this verb connects to no server, so it takes no --{option}");
                Err(zkr.error(ErrorKind::ArgumentConflict, message))
            }
        }
    }
}
