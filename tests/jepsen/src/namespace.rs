//! Network namespaces, each with a process that keeps it.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

/// A network namespace. The kernel removes it after the drop of this value, or after the end of
/// this process.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// The process reads until its standard input ends.
    keeper: Child,
}

impl Namespace {
    /// Makes a namespace without interfaces.
    pub(crate) fn start() -> anyhow::Result<Namespace> {
        let mut keeper = Command::new("unshare")
            .args(["--net", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run unshare")?;
        // It answers once it is there.
        let stdin = keeper.stdin.as_mut().context("no standard input")?;
        stdin.write_all(b"\n")?;
        let stdout = keeper.stdout.as_mut().context("no standard output")?;
        let answered = stdout.read_exact(&mut [0]);
        answered.context("unshare has failed, as it says above")?;
        Ok(Namespace { keeper })
    }

    pub(crate) fn process(&self) -> u32 {
        self.keeper.id()
    }

    /// The words before a command that make it run in the namespace.
    pub(crate) fn entrance(&self) -> [String; 2] {
        let namespace = format!("--net=/proc/{}/ns/net", self.process());
        ["nsenter".to_owned(), namespace]
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // An error here means that it has ended already.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// Runs a command of words to its end.
pub(crate) fn run(line: &str) -> anyhow::Result<()> {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    let status = command.args(words).status();
    let status = status.with_context(|| format!("cannot run {line}"))?;
    ensure!(status.success(), "{line} has failed, as it says above");
    Ok(())
}
