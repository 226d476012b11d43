//! The commands that run with a mutant, and how each ends.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::mutant::{Mutant, VARIABLE};
use crate::cargo::line;
use crate::test::few_threads;

/// The package of the simulation.
pub(crate) const SCHEDULES: &str = "zookeeper-recipes-schedules";

/// How many programs run at the same time. Half of the time they wait for their servers.
pub(super) const AT_A_TIME: usize = 2;

/// How often a command that runs is looked at.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// The command with this mutant, or with none.
pub(super) fn with<'c>(command: &'c mut Command, mutant: Option<&Mutant>) -> &'c mut Command {
    let name = mutant.map_or("", |mutant| &mutant.name);
    few_threads(command).env(VARIABLE, name)
}

/// True if the command fails, or does not end within this time. Then the processes that it has
/// started are killed.
pub(super) fn fails(command: &mut Command, time: Duration) -> anyhow::Result<bool> {
    let until = Instant::now() + time;
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = group::alone(quiet).spawn();
    let mut child = child.with_context(|| format!("cannot run {}", line(command)))?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(!status.success());
        }
        if Instant::now() > until {
            group::kill(&mut child)?;
            child.wait()?;
            return Ok(true);
        }
        thread::sleep(LOOKS_EVERY);
    }
}

/// A command with the processes that it starts.
#[cfg(unix)]
mod group {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use rustix::process::{Pid, Signal, kill_process_group};

    pub(super) fn alone(command: &mut Command) -> &mut Command {
        command.process_group(0)
    }

    pub(super) fn kill(child: &mut Child) -> io::Result<()> {
        Ok(kill_process_group(Pid::from_child(child), Signal::KILL)?)
    }
}

/// A command, without the processes that it starts.
#[cfg(not(unix))]
mod group {
    use std::io;
    use std::process::{Child, Command};

    pub(super) fn alone(command: &mut Command) -> &mut Command {
        command
    }

    pub(super) fn kill(child: &mut Child) -> io::Result<()> {
        child.kill()
    }
}
