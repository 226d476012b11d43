//! A library at work.

use std::time::Duration;

use anyhow::Context;
use zookeeper_recipes_benches::SESSION_TIMEOUT;

use crate::peer::Peer;

/// How much longer than the work itself an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A process in which a library is at work. Dropping the driver ends the process.
#[derive(Debug)]
pub(crate) struct Driver(zookeeper_recipes_interop::Peer);

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
    pub(crate) async fn start(peer: Peer, connect_string: &str) -> anyhow::Result<Driver> {
        let mut command = peer.command()?;
        command.arg(connect_string);
        command.args([&*SESSION_TIMEOUT.as_millis().to_string(), "work"]);
        let started = zookeeper_recipes_interop::Peer::start(peer.name(), command).await;
        Ok(Driver(started?))
    }

    /// The library's name and version.
    pub(crate) fn version(&self) -> &str {
        self.0.version()
    }

    pub(crate) fn process_id(&self) -> Option<u32> {
        self.0.process_id()
    }

    /// Lets contenders take turns for this time.
    pub(crate) async fn run(
        &mut self,
        work: &str,
        path: &str,
        size: usize,
        time: Duration,
    ) -> anyhow::Result<Done> {
        let order = format!("run {work} {path} {size} {}", time.as_millis());
        done(&self.0.ask(&order, "done ", time + PATIENCE).await?)
    }

    /// Adds waiters behind the same holder.
    pub(crate) async fn queue(
        &mut self,
        work: &str,
        path: &str,
        waiters: usize,
    ) -> anyhow::Result<()> {
        let order = format!("queue {work} {path} {waiters}");
        self.0.ask(&order, "queued", PATIENCE).await.map(drop)
    }

    /// Lets the holder release, and waits until all waiters have held.
    pub(crate) async fn release(&mut self) -> anyhow::Result<Done> {
        done(&self.0.ask("release", "done ", PATIENCE).await?)
    }

    /// How many bytes of a heap of fixed size are in use.
    pub(crate) async fn heap_in_use(&mut self) -> anyhow::Result<u64> {
        let answer = self.0.ask("memory", "memory ", PATIENCE).await?;
        answer.parse().with_context(|| format!("{answer:?}"))
    }

    /// Lets the process close its sessions and end.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        self.0.end(PATIENCE).await
    }
}

fn done(answer: &str) -> anyhow::Result<Done> {
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
    done().with_context(|| format!("{answer:?}"))
}
