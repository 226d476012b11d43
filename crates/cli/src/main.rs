//! `zkr`: locks, semaphores and leader election on ZooKeeper, for shells and operators.
//!
//! `zkr lock PATH -- command` runs a command under a lock, as `flock` does on one machine. If the
//! lock is lost, the command is stopped before another process can hold. [`run`] says how.
//!
//! [`exit`] lists the exit codes. [`verbs`] lists the verbs, each in a file of its own.

mod addresses;
mod arguments;
mod connecting;
mod credentials;
mod doctor;
mod duration;
mod exit;
mod failure;
mod four_letter;
mod look;
mod output;
mod plain_text;
mod queue;
#[cfg(unix)]
mod run;
mod screen;
mod serve;
mod signals;
mod thorough;
mod verbs;
mod watch;

use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::failure::Failure;

fn main() -> ExitCode {
    #[cfg(unix)]
    if let Some(played) = run::play_part() {
        return ended(played);
    }
    match Arguments::of_this_process() {
        Ok(arguments) => {
            let zkr = Arguments::command();
            ended(arguments.verb.run(&arguments.connection, zkr))
        }
        Err(error) => not_parsed(&error),
    }
}

fn ended(result: Result<Exit, Failure>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print();
            failure.exit().into()
        }
    }
}

/// What the user has probably forgotten.
fn advice(error: &clap::Error) -> &'static str {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(unknown)) => unknown.as_str(),
        _ => "-",
    };
    let has_dashes = std::env::args_os().any(|argument| argument == "--");
    match error.kind() {
        ErrorKind::UnknownArgument if !has_dashes && !unknown.starts_with('-') => {
            "; put -- before a command"
        }
        _ => "",
    }
}

/// Prints the help, the version, or what is wrong with the arguments.
fn not_parsed(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // An error means that nobody reads it.
            let _ = error.print();
            Exit::Done.into()
        }
        _ => {
            let text = failure::one_line(&error.render().to_string());
            Failure::usage(text + advice(error)).print();
            Exit::Usage.into()
        }
    }
}
