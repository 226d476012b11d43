//! A conversation with a library at work.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use zookeeper_recipes_benches::SESSION_TIMEOUT;

use crate::peer::Peer;
use crate::place::Place;

/// How much longer than the work itself an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A process in which a library is at work. Dropping the driver ends the process.
#[derive(Debug)]
pub(crate) struct Driver {
    peer: Peer,
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// The library's name and version.
    pub(crate) version: String,
}

/// The result of an order: the turns, and how long they took.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) took: Duration,
    pub(crate) times: u64,
    /// The turns before and after the measurement included.
    pub(crate) all_times: u64,
    /// The voluntary switches of all threads in the measurement.
    pub(crate) switches: u64,
    /// How long each turn took, in microseconds.
    pub(crate) each: Vec<u32>,
}

impl Driver {
    /// Starts the process, and waits until it is ready.
    pub(crate) async fn start(peer: Peer, place: &Place) -> anyhow::Result<Driver> {
        let command = place.command(peer.command()?);
        let mut child = Command::from(command)
            .arg(&place.connect_string)
            .arg(SESSION_TIMEOUT.as_millis().to_string())
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

    /// The id of the process.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Lets contenders take turns for this time.
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

    /// Adds waiters behind the same holder.
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

    /// Lets the holder release, and waits until all waiters have held.
    pub(crate) async fn release(&mut self) -> anyhow::Result<Done> {
        self.order("release").await?;
        self.done(PATIENCE).await
    }

    /// How many bytes of a heap of fixed size are in use.
    pub(crate) async fn heap_in_use(&mut self) -> anyhow::Result<u64> {
        self.order("memory").await?;
        let answer = self.answer("memory ", PATIENCE).await?;
        answer
            .parse()
            .with_context(|| format!("{}: {answer:?}", self.peer.name()))
    }

    /// Lets the process close its sessions and end.
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
            let mut words = answer.split(' ');
            let mut number = || words.next()?.parse().ok();
            Some(Done {
                took: Duration::from_nanos(number()?),
                times: number()?,
                all_times: number()?,
                // A release has no more words.
                switches: number().unwrap_or(0),
                each: words.next().map_or(Vec::new(), |it| {
                    it.split(',').flat_map(str::parse).collect()
                }),
            })
        };
        done().with_context(|| format!("{}: {answer:?}", self.peer.name()))
    }

    /// The rest of the next line, which must begin with this word.
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
