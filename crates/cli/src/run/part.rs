//! The parts in which `zkr` starts itself: the guard, and the beginning of the command's process.

use std::ffi::OsString;
use std::time::Duration;

use clap::Parser;

use super::guard::guard;
use super::itself::MARK;
use super::started::become_command;
use crate::exit::Exit;
use crate::failure::Failure;

/// A part, with its arguments.
#[derive(Debug, Parser)]
enum Part {
    /// Guards a command.
    Guard {
        #[arg(long)]
        grace_nanoseconds: u64,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Becomes the command.
    Start {
        /// The process that starts this one.
        #[arg(long)]
        guard: i32,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

/// Plays the part that this process was started for. `None` if a user has started it.
///
/// A part needs no runtime: the guard is small, and the other process becomes the command.
pub(crate) fn play_part() -> Option<Result<Exit, Failure>> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.peek()? != MARK {
        return None;
    }
    Some(match Part::try_parse_from(arguments) {
        Ok(Part::Guard {
            grace_nanoseconds,
            command,
        }) => guard(Duration::from_nanos(grace_nanoseconds), &command),
        Ok(Part::Start { guard, command }) => become_command(guard, &command),
        Err(error) => Err(Failure::usage(error.to_string())),
    })
}
