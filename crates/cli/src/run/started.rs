//! The command's process, before it becomes the command.
//!
//! The guard starts `zkr` itself once more, in a process group of its own. That process asks the
//! system to be killed when the guard dies, stops until the guard continues it, and then becomes
//! the command. So the terminal belongs to the group before the command reads from it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, kill_process};

use super::signals;
use crate::exit::Exit;
use crate::failure::Failure;

/// Becomes the command. The call returns only if the command cannot be started.
pub(crate) fn become_command(guard: i32, command: &[OsString]) -> Result<Exit, Failure> {
    let failed = |error| Failure::internal("cannot prepare the command's process", error);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    // The guard may have died before the request.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(guard) {
        return Err(Failure::internal("the guard process", "it has died"));
    }
    kill_process(getpid(), Signal::STOP).map_err(failed)?;
    // The guard has blocked them, and the command must not inherit that.
    signals::unblock();
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("no command is given after --"));
    };
    let error = Command::new(program).args(arguments).exec();
    let exit = match error.kind() {
        ErrorKind::NotFound => Exit::Code(127),
        _ => Exit::Code(126),
    };
    Err(Failure::new(
        exit,
        format!("cannot start {program:?}: {error}"),
    ))
}
