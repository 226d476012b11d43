//! The libraries whose locks guard the set, and the processes of their clients.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use zookeeper_recipes_benches::report::target;
use zookeeper_recipes_interop::Program;

use crate::arena::Arena;
use crate::network::ClientNetwork;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Library {
    /// The lock of this project.
    Ours,
    /// `InterProcessMutex` of Apache Curator.
    Curator,
    /// `Lock` of kazoo.
    Kazoo,
}

impl Library {
    fn command(
        self,
        [connect, path]: [&str; 2],
        session_timeout: Duration,
    ) -> anyhow::Result<Command> {
        let milliseconds = session_timeout.as_millis().to_string();
        let mut command = match self {
            Library::Ours => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["client", connect, path, &milliseconds]);
                return Ok(command);
            }
            Library::Curator => Program::curator(&target(), &Program::QUICK_JAVA)?.command(),
            Library::Kazoo => Program::kazoo(&target())?.command(),
        };
        command.args([connect, &milliseconds, "set", path]);
        Ok(command)
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) process: u32,
    pub(crate) network: ClientNetwork,
    child: Child,
}

impl Client {
    /// Starts the process of a client, and a task that answers its lines.
    pub(crate) fn start(
        library: Library,
        network: ClientNetwork,
        place: [&str; 2],
        session_timeout: Duration,
        (arena, number): (&Arc<Arena>, usize),
    ) -> anyhow::Result<Client> {
        let inner = library.command(place, session_timeout)?;
        let entrance = network.entrance();
        let mut command = tokio::process::Command::new(&entrance[0]);
        command
            .args(&entrance[1..])
            .arg(inner.get_program())
            .args(inner.get_args());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command
            .kill_on_drop(true)
            .spawn()
            .context("cannot run nsenter")?;
        let process = child.id().context("it has ended")?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let arena = arena.clone();
        tokio::spawn(async move {
            if let Err(error) = converse(&arena, number, stdin, stdout).await {
                eprintln!("client {number}: {error:#}");
            }
            arena.gone(number);
        });
        Ok(Client {
            process,
            network,
            child,
        })
    }

    /// Waits until the process has ended, or kills it after this time.
    pub(crate) async fn end(mut self, patience: Duration) -> anyhow::Result<()> {
        if tokio::time::timeout(patience, self.child.wait())
            .await
            .is_err()
        {
            self.child.kill().await?;
        }
        Ok(())
    }
}

async fn converse(
    arena: &Arena,
    number: usize,
    mut stdin: ChildStdin,
    stdout: ChildStdout,
) -> anyhow::Result<()> {
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        let Some(answer) = arena.answer(number, &line)? else {
            continue;
        };
        // A process that has been killed reads no answer.
        if stdin
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .is_err()
        {
            break;
        }
    }
    Ok(())
}
