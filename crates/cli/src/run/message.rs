//! What `zkr` and its guard process report to each other: one line for each message.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What `zkr` sends to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The hold lasts until this instant of the [clock](super::clock), if nothing renews it.
    Until(Duration),
    /// The terminal is given: the command may begin.
    Begin,
    /// Pass this signal on to the command's process group.
    Signal(i32),
}

/// What the guard reports to `zkr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The process group of the command is there, and waits for [`Order::Begin`].
    Ready(i32),
    /// The hold is about to run out, so the command is being stopped.
    Stopping,
    /// The command was stopped by this signal, such as by Ctrl-Z.
    Stopped(i32),
    /// The command has ended with this exit code.
    Exited(i32),
    /// The command was ended by this signal.
    Killed(i32),
    /// The command could not be started. This is the exit code that says why.
    NotStarted(i32),
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Until(instant) => write!(formatter, "until {}", instant.as_nanos()),
            Order::Begin => write!(formatter, "begin 0"),
            Order::Signal(number) => write!(formatter, "signal {number}"),
        }
    }
}

impl FromStr for Order {
    type Err = Garbled;

    fn from_str(line: &str) -> Result<Order, Garbled> {
        let (word, number) = line.split_once(' ').ok_or(Garbled)?;
        let number: u64 = number.parse().map_err(|_| Garbled)?;
        match word {
            "until" => Ok(Order::Until(Duration::from_nanos(number))),
            "begin" => Ok(Order::Begin),
            "signal" => Ok(Order::Signal(i32::try_from(number).map_err(|_| Garbled)?)),
            _ => Err(Garbled),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, number) = match self {
            Report::Ready(id) => ("ready", *id),
            Report::Stopping => ("stopping", 0),
            Report::Stopped(signal) => ("stopped", *signal),
            Report::Exited(code) => ("exited", *code),
            Report::Killed(signal) => ("killed", *signal),
            Report::NotStarted(code) => ("not-started", *code),
        };
        write!(formatter, "{word} {number}")
    }
}

impl FromStr for Report {
    type Err = Garbled;

    fn from_str(line: &str) -> Result<Report, Garbled> {
        let (word, number) = line.split_once(' ').ok_or(Garbled)?;
        let number = number.parse().map_err(|_| Garbled)?;
        match word {
            "ready" => Ok(Report::Ready(number)),
            "stopping" => Ok(Report::Stopping),
            "stopped" => Ok(Report::Stopped(number)),
            "exited" => Ok(Report::Exited(number)),
            "killed" => Ok(Report::Killed(number)),
            "not-started" => Ok(Report::NotStarted(number)),
            _ => Err(Garbled),
        }
    }
}

/// The line is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Garbled;
