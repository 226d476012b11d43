//! The commands that run with a mutant, and how each ends that is stopped at its first failure.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::mutant::{Mutant, VARIABLE};
use crate::cargo::line;
use crate::test::few_threads;

pub(crate) const SCHEDULES: &str = "zookeeper-recipes-schedules";

/// How many programs run at the same time. Half of the time they wait for their servers.
pub(super) const AT_A_TIME: usize = 2;

pub(super) fn with<'c>(command: &'c mut Command, mutant: Option<&Mutant>) -> &'c mut Command {
    let name = mutant.map_or("", |mutant| &mutant.name);
    few_threads(command).env(VARIABLE, name)
}

/// Runs a command until it ends, until it prints the line of a test or a seed that fails, or for
/// this time. Then the processes that it has started are killed.
///
/// `None` if it succeeds. Otherwise the line, or what else was wrong.
pub(super) fn first_failure(
    command: &mut Command,
    time: Duration,
) -> anyhow::Result<Option<String>> {
    let until = Instant::now() + time;
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = group::alone(piped).spawn();
    let mut child = child.with_context(|| format!("cannot run {}", line(command)))?;
    let (sender, lines) = channel();
    let output = child.stdout.take().context("the output is piped")?;
    thread::spawn(move || {
        // Nobody receives after the first failure.
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let _ = lines.map(|line| sender.send(line)).find(Result::is_err);
    });
    let failure = loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) if is_failure(&line) => break line,
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => break format!("no end within {time:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait()?;
                return Ok((!status.success()).then(|| status.to_string()));
            }
        }
    };
    group::kill(&mut child)?;
    child.wait()?;
    Ok(Some(failure))
}

/// True for the line of a test or of a seed that has failed.
fn is_failure(line: &str) -> bool {
    line.starts_with("VIOLATION ") || line.starts_with("test ") && line.ends_with(" FAILED")
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
