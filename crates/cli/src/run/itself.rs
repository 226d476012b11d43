//! `zkr`, started by itself.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::credentials;

/// The first argument of a process that plays a part. It is no verb, and no help names it.
pub(super) const MARK: &str = "process";

/// The file of the program that runs, also if another version was installed meanwhile.
const RUNNING: &str = "/proc/self/exe";

/// The program of this process, to play this part.
///
/// No part opens a session, so none gets the credentials. Nor does the command, which inherits the
/// environment of the guard.
pub(super) fn itself(part: &str) -> io::Result<Command> {
    let mut command = if Path::new(RUNNING).exists() {
        Command::new(RUNNING)
    } else {
        Command::new(std::env::current_exe()?)
    };
    command.arg0("zkr").args([MARK, part]);
    command.env_remove(credentials::VARIABLE);
    Ok(command)
}
