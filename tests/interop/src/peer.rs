//! A process with a library at work.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long a process has until its sessions are open.
const PATIENCE: Duration = Duration::from_secs(600);

/// A process with a library at work, which gets orders. The process ends when this is dropped.
#[derive(Debug)]
pub struct Peer {
    name: &'static str,
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    version: String,
}

impl Peer {
    /// Starts a process by this command, and waits until it is ready.
    pub async fn start(name: &'static str, command: std::process::Command) -> anyhow::Result<Peer> {
        let mut child = Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = child.stdout.take().context("no standard output")?;
        let mut peer = Peer {
            name,
            child,
            orders,
            answers: BufReader::new(answers).lines(),
            version: String::new(),
        };
        peer.version = peer.answer("ready ", PATIENCE).await?;
        Ok(peer)
    }

    /// The library's name and version.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Gives an order, and returns the rest of the answer, which must begin with this word.
    pub async fn ask(
        &mut self,
        order: &str,
        word: &str,
        patience: Duration,
    ) -> anyhow::Result<String> {
        self.order(order).await?;
        self.answer(word, patience).await
    }

    pub async fn order(&mut self, order: &str) -> anyhow::Result<()> {
        let sent = self.orders.write_all(format!("{order}\n").as_bytes()).await;
        sent.with_context(|| format!("{} has ended before: {order}", self.name))
    }

    /// The rest of the next line, which must begin with this word.
    pub async fn answer(&mut self, word: &str, patience: Duration) -> anyhow::Result<String> {
        let name = self.name;
        let line = timeout(patience, self.answers.next_line())
            .await
            .with_context(|| format!("{name} has not answered within {patience:?}"))?
            .with_context(|| format!("cannot read the output of {name}"))?
            .with_context(|| format!("{name} has failed, as it says above"))?;
        match line.strip_prefix(word) {
            Some(rest) => Ok(rest.to_owned()),
            None => bail!("{name} says {line:?} instead of {word:?}"),
        }
    }

    /// Ends the input, and waits until the process has closed its sessions and ended.
    pub async fn end(mut self, patience: Duration) -> anyhow::Result<()> {
        drop(self.orders);
        let status = timeout(patience, self.child.wait()).await;
        let status = status.with_context(|| format!("{} does not end", self.name))??;
        if !status.success() {
            bail!("{} failed at its end ({status})", self.name);
        }
        Ok(())
    }
}
