//! The command's process, before it becomes the command.
//!
//! The guard starts `zkr` itself once more, in a process group of its own. That process asks the
//! system to be killed when the guard dies, stops until the guard continues it, and then becomes
//! the command. So the terminal belongs to the group before the command reads from it.
//!
//! The standard input is a socket of the guard, over which the command's standard input comes. The
//! socket ends when the process becomes the command. If it cannot, it sends a byte before.

use std::ffi::OsString;
use std::io::{Write, stdin};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpid, getppid, kill_process};

use super::descriptor;
use super::program::not_started;
use super::signals;
use crate::exit::Exit;
use crate::failure::Failure;

/// Becomes the command. The call returns only if the command cannot be started.
pub(crate) fn become_command(guard: i32, command: &[OsString]) -> Result<Exit, Failure> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(not_prepared)?;
    // The guard may have died before the request.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(guard) {
        return Err(Failure::internal("the guard process", "it has died"));
    }
    // This copy, unlike the standard input, is closed when the process becomes the command.
    let socket = stdin().as_fd().try_clone_to_owned();
    let mut socket = UnixStream::from(socket.map_err(not_prepared)?);
    let input = descriptor::receive(&socket).map_err(not_prepared)?;
    kill_process(getpid(), Signal::STOP).map_err(not_prepared)?;
    // The guard has blocked them, and the command must not inherit that.
    signals::unblock();
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("no command is given after --"));
    };
    let stdin = Stdio::from(input);
    let error = Command::new(program).args(arguments).stdin(stdin).exec();
    // An error means that the guard has died.
    let _ = socket.write_all(b"\n");
    Err(not_started(program, &error))
}

fn not_prepared(error: impl Into<std::io::Error>) -> Failure {
    Failure::internal("cannot prepare the command's process", error.into())
}
