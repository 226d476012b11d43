//! What `zkr` and its guard process report to each other: one line for each message.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What `zkr` sends to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Order {
    /// The hold lasts until this instant of the [clock](super::clock), if nothing renews it.
    Until(Duration),
    /// The terminal is given: the command may begin.
    Begin,
    /// Pass this signal on to the command's process group.
    Signal(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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

pub(super) fn line(message: &impl Serialize) -> String {
    // Only a map whose keys are no text would fail.
    serde_json::to_string(message).unwrap_or_default() + "\n"
}

/// The message in a line. `None` if it is none.
pub(super) fn message<M: DeserializeOwned>(line: &str) -> Option<M> {
    serde_json::from_str(line).ok()
}
