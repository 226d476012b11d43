//! A conversation with a library at work.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::peer::Peer;

/// How much longer than the work itself an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process in which a library is at work. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Driver {
    peer: Peer,
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// The library's name and version.
    pub(crate) version: String,
}

/// What has been done, and how long it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) took: Duration,
    pub(crate) times: u64,
    /// With those before and after the measurement.
    pub(crate) all_times: u64,
}

impl Driver {
    /// Starts the process, and waits until it is ready.
    pub(crate) async fn start(
        peer: Peer,
        connect_string: &str,
        session_timeout: Duration,
    ) -> anyhow::Result<Driver> {
        let command = peer.command()?;
        let mut child = Command::from(command)
            .arg(connect_string)
            .arg(session_timeout.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", peer.name()))?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = child.stdout.take().context("no standard output")?;
        let mut driver = Driver {
            peer,
            child,
            orders,
            answers: BufReader::new(answers).lines(),
            version: String::new(),
        };
        driver.version = driver.answer("ready ", PATIENCE).await?;
        Ok(driver)
    }

    /// The process.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Lets contenders take turns for so long.
    pub(crate) async fn run(
        &mut self,
        work: &str,
        path: &str,
        size: usize,
        time: Duration,
    ) -> anyhow::Result<Done> {
        let milliseconds = time.as_millis();
        self.order(&format!("run {work} {path} {size} {milliseconds}"))
            .await?;
        self.done(time + PATIENCE).await
    }

    /// Lets so many more wait behind the same holder.
    pub(crate) async fn queue(
        &mut self,
        work: &str,
        path: &str,
        waiters: usize,
    ) -> anyhow::Result<()> {
        self.order(&format!("queue {work} {path} {waiters}"))
            .await?;
        self.answer("queued", PATIENCE).await?;
        Ok(())
    }

    /// Lets the holder go, and waits until all have held.
    pub(crate) async fn release(&mut self) -> anyhow::Result<Done> {
        self.order("release").await?;
        self.done(PATIENCE).await
    }

    /// What is in use of a heap of fixed size.
    pub(crate) async fn heap_in_use(&mut self) -> anyhow::Result<u64> {
        self.order("memory").await?;
        let answer = self.answer("memory ", PATIENCE).await?;
        answer
            .parse()
            .with_context(|| format!("{}: {answer:?}", self.peer.name()))
    }

    /// Lets it close its sessions and end.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        drop(self.orders);
        let status = timeout(PATIENCE, self.child.wait()).await;
        let status = status.with_context(|| format!("{} does not end", self.peer.name()))??;
        if !status.success() {
            bail!("{} failed at its end ({status})", self.peer.name());
        }
        Ok(())
    }

    async fn order(&mut self, line: &str) -> anyhow::Result<()> {
        self.orders
            .write_all(format!("{line}\n").as_bytes())
            .await
            .with_context(|| format!("{} has ended before: {line}", self.peer.name()))
    }

    async fn done(&mut self, patience: Duration) -> anyhow::Result<Done> {
        let answer = self.answer("done ", patience).await?;
        let done = || {
            let mut numbers = answer.split(' ').map(str::parse);
            let mut number = || numbers.next()?.ok();
            Some(Done {
                took: Duration::from_nanos(number()?),
                times: number()?,
                all_times: number()?,
            })
        };
        done().with_context(|| format!("{}: {answer:?}", self.peer.name()))
    }

    /// What follows this word in the next line.
    async fn answer(&mut self, word: &str, patience: Duration) -> anyhow::Result<String> {
        let name = self.peer.name();
        let line = timeout(patience, self.answers.next_line())
            .await
            .with_context(|| format!("{name} has not answered within {patience:?}"))?
            .with_context(|| format!("cannot read what {name} says"))?
            .with_context(|| format!("{name} has failed, as it says above"))?;
        match line.strip_prefix(word) {
            Some(rest) => Ok(rest.to_owned()),
            None => bail!("{name} says {line:?} instead of {word:?}"),
        }
    }
}
