//! Why `zkr` failed: one line that says what to do, and an exit code.

use std::fmt;
use std::io::{self, Write};

use zookeeper_recipes_core::{Error, InvalidInput, Refusal, ServerError, SessionEnd};

use crate::exit::Exit;
use crate::plain_text::plain;

/// A failure: one line for the user, and the exit code.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        let message = plain(&one_line(&message.into()));
        Failure { exit, message }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// A failure of `zkr` itself or of the machine.
    pub(crate) fn internal(what: &str, error: impl std::fmt::Display) -> Failure {
        Failure::new(Exit::Internal, format!("{what}: {error}"))
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Prints the line to the standard error, which may be closed.
    pub(crate) fn print(&self) {
        // No output is left for a report of an error.
        let _ = writeln!(io::stderr(), "zkr: {}", self.message);
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<InvalidInput> for Failure {
    fn from(error: InvalidInput) -> Failure {
        Failure::new(of_input(&error), error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (exit, advice) = judge(&error);
        Failure::new(exit, format!("{error}{advice}"))
    }
}

/// The exit code for an error, and what the user can do, unless the error says that already.
fn judge(error: &Error) -> (Exit, &'static str) {
    match error {
        Error::InvalidInput(error) => (of_input(error), ""),
        Error::MissingChroot { .. } => (Exit::Usage, ""),
        Error::OtherRecipe { .. } => (
            Exit::Usage,
            "; readers and writers of one lock use `--shared` and `--write`",
        ),
        Error::NoSession { reason, .. } | Error::SessionOver { reason, .. } => of_session(*reason),
        Error::Connect { cause, .. } => of_opening(&**cause),
        Error::Refused { refusal, .. } => of_refusal(refusal),
        Error::DeadlineElapsed { .. } => (Exit::TimedOut, ""),
        Error::ContenderDeleted { .. } | Error::ContenderWritten { .. } | Error::Lost { .. } => {
            (Exit::Lost, "")
        }
        Error::Disconnected { .. } | Error::OutcomeUnknown { .. } => {
            (Exit::Unavailable, "; try again")
        }
        Error::NoLease { .. } => (Exit::Unavailable, "; try a longer --session-timeout"),
        _ => (Exit::Internal, ""),
    }
}

/// The user can correct the arguments, and not the clock.
fn of_input(error: &InvalidInput) -> Exit {
    match error.subject() {
        "clock of this process" => Exit::Internal,
        _ => Exit::Usage,
    }
}

fn of_opening(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> (Exit, &'static str) {
    // The refusal of a scheme has the end of the session as its source.
    let source = cause.source().and_then(|source| source.downcast_ref());
    match cause.downcast_ref().or(source) {
        Some(ServerError::SessionOver(reason)) => of_session(*reason),
        _ if cause.to_string().contains(": TLS: ") => (
            Exit::Unavailable,
            "; check --connect, --ca, --cert, --key and the servers",
        ),
        _ => (Exit::Unavailable, "; check --connect and the servers"),
    }
}

fn of_session(reason: SessionEnd) -> (Exit, &'static str) {
    match reason {
        SessionEnd::AuthenticationFailed => (
            Exit::NoPermission,
            "; check --credentials-file or ZKR_CREDENTIALS",
        ),
        SessionEnd::SaslRequired => (
            Exit::NoPermission,
            "; give sasl:user:password by --credentials-file or ZKR_CREDENTIALS",
        ),
        _ => (Exit::Unavailable, "; try again"),
    }
}

fn of_refusal(refusal: &Refusal) -> (Exit, &'static str) {
    match refusal {
        Refusal::NoAuth
        | Refusal::NoPermission(_)
        | Refusal::NoCredentials
        | Refusal::InvalidAcl => (
            Exit::NoPermission,
            "; give credentials that may, by --credentials-file or ZKR_CREDENTIALS",
        ),
        Refusal::NoNode => (Exit::Usage, "; check the path and the chroot"),
        Refusal::NoChildrenForEphemerals | Refusal::BadArguments(_) => {
            (Exit::Usage, "; use another path")
        }
        Refusal::Throttled | Refusal::ReadOnly => (Exit::Unavailable, "; try again"),
        _ => (Exit::Internal, ""),
    }
}

/// Prints a line about something that does not end the command, to the standard error.
pub(crate) fn say(message: &str) {
    // No output is left for a report of an error.
    let _ = writeln!(io::stderr(), "zkr: {}", plain(message));
}

/// As [`say`], of what may be wrong.
pub(crate) fn warn(message: &str) {
    say(&format!("warning: {message}"));
}

/// The text in one line, without the word that begins each of clap's messages.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

#[cfg(test)]
#[path = "../tests/unit/failure.rs"]
mod tests;
