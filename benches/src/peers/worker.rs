//! A library in Rust at work: the other side of the conversation.

use std::collections::HashMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::ValueEnum;
use tokio::sync::{Barrier, mpsc};
use tokio::task::JoinSet;
use zookeeper_recipes_benches::Threads;

use crate::client::OfClient;
use crate::library::{Kind, Library, Lock, Release};
use crate::ours::Ours;
use crate::peer::Rust;

/// The number of sessions that waiters share.
const SESSIONS_OF_WAITERS: usize = 4;

/// Follows the orders on the standard input until that ends.
pub(crate) fn work(
    library: Rust,
    connect_string: &str,
    session_timeout: Duration,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let library: Box<dyn Library> = match library {
        Rust::Ours => Box::new(Ours::new(connect_string, session_timeout)),
        Rust::Client => Box::new(OfClient::new(connect_string, session_timeout)),
    };
    say(&format!("ready {}", library.version()))?;
    let mut worker = Worker {
        library,
        holders: HashMap::new(),
        queue: None,
    };
    for order in stdin().lock().lines() {
        let order = order?;
        let words: Vec<&str> = order.split(' ').collect();
        let answer = runtime.block_on(worker.obey(&words)).context(order)?;
        say(&answer)?;
    }
    runtime.block_on(worker.end());
    Ok(())
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut stdout = stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()?;
    Ok(())
}

struct Worker {
    library: Box<dyn Library>,
    /// The holders because of which a try fails, by the path of the lock.
    holders: HashMap<String, Release>,
    queue: Option<Queue>,
}

/// A holder, and the waiters behind it.
struct Queue {
    holder: Release,
    waiting: JoinSet<anyhow::Result<Instant>>,
}

impl Worker {
    async fn obey(&mut self, words: &[&str]) -> anyhow::Result<String> {
        match *words {
            ["run", work, path, size, milliseconds] => {
                let contenders = self.contenders(work, path, size.parse()?).await?;
                let time = Duration::from_millis(milliseconds.parse()?);
                run(contenders, time).await
            }
            ["queue", work, path, waiters] => {
                self.queue(work, path, waiters.parse()?).await?;
                Ok("queued".to_owned())
            }
            ["release"] => {
                let queue = self.queue.take().context("nobody waits")?;
                let waiters = queue.waiting.len();
                let took = queue.release().await?;
                Ok(format!("done {} {waiters} {waiters}", took.as_nanos()))
            }
            // There is no heap of fixed size.
            ["memory"] => Ok("memory 0".to_owned()),
            _ => bail!("not understood"),
        }
    }

    async fn contenders(
        &mut self,
        work: &str,
        path: &str,
        size: usize,
    ) -> anyhow::Result<Vec<Lock>> {
        let kind = match work {
            "contended" | "many" => Kind::Lock,
            "tasks" => Kind::Shared,
            work => Kind::from_str(work, false).map_err(anyhow::Error::msg)?,
        };
        let library = &mut self.library;
        if kind == Kind::Try && !self.holders.contains_key(path) {
            let holder = library.lock(Kind::Lock, 1, path).await?;
            self.holders.insert(path.to_owned(), holder().await?);
        }
        let mut contenders: Vec<Lock> = Vec::with_capacity(size);
        for number in 0..size {
            let contender = match (work, contenders.first()) {
                ("tasks" | "mutex", Some(shared)) => shared.clone(),
                ("contended", _) => library.lock(kind, number, path).await?,
                ("many", _) => library.lock(kind, 0, &format!("{path}/{number}")).await?,
                _ => library.lock(kind, 0, path).await?,
            };
            contenders.push(contender);
        }
        Ok(contenders)
    }

    /// Ends all waiters, which wait in vain.
    async fn end(mut self) {
        drop(self.queue);
        drop(self.holders);
        self.library.close().await;
    }

    async fn queue(&mut self, work: &str, path: &str, waiters: usize) -> anyhow::Result<()> {
        let (holder, waiter, sessions) = match work {
            "readers" => (Kind::Write, Kind::Read, waiters),
            "waiters" => (Kind::Lock, Kind::Lock, SESSIONS_OF_WAITERS),
            _ => bail!("no such work"),
        };
        let mut queue = match self.queue.take() {
            Some(queue) => queue,
            None => Queue {
                holder: self.library.lock(holder, 0, path).await?().await?,
                waiting: JoinSet::new(),
            },
        };
        let all_hold = Arc::new(Barrier::new(waiters));
        for number in 0..waiters {
            let session = 1 + number % sessions;
            let lock = self.library.lock(waiter, session, path).await?;
            let all_hold = all_hold.clone();
            queue.waiting.spawn(async move {
                let hold = lock().await?;
                let at = Instant::now();
                all_hold.wait().await;
                hold.await?;
                Ok(at)
            });
        }
        self.queue = Some(queue);
        Ok(())
    }
}

impl Queue {
    /// Releases, and says how long it takes until all waiters hold.
    async fn release(mut self) -> anyhow::Result<Duration> {
        // The task runs on a worker, as a service's tasks do.
        let holder = self.holder;
        let began = tokio::spawn(async move {
            let began = Instant::now();
            holder.await.map(|()| began)
        });
        let mut last = None;
        while let Some(waited) = self.waiting.join_next().await {
            last = last.max(Some(waited??));
        }
        let last = last.context("nobody waited")?;
        Ok(last - began.await??)
    }
}

/// Lets the contenders take turns for about this time, and answers what that came to.
async fn run(contenders: Vec<Lock>, time: Duration) -> anyhow::Result<String> {
    let first_turns = contenders.len() as u64;
    let taken = Arc::new(AtomicU64::new(0));
    let stopped = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    let (begun, mut begins) = mpsc::channel(contenders.len());
    for lock in contenders {
        let (taken, stopped, begun) = (taken.clone(), stopped.clone(), begun.clone());
        tasks.spawn(async move {
            let release = lock().await?;
            begun.send(()).await?;
            release.await?;
            let mut times = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                let release = lock().await?;
                taken.fetch_add(1, Ordering::Relaxed);
                release.await?;
                if !stopped.load(Ordering::Relaxed) {
                    times.push(began.elapsed().as_micros().to_string());
                }
            }
            anyhow::Ok(times)
        });
    }
    let measured = async {
        for _ in 0..tasks.len() {
            begins.recv().await.context("a contender has failed")?;
        }
        let (threads, before) = (Threads::now(), taken.load(Ordering::Relaxed));
        let from = Instant::now();
        tokio::time::sleep(time).await;
        let after = taken.load(Ordering::Relaxed);
        let (took, threads) = (from.elapsed(), Threads::now() - threads);
        anyhow::Ok((took, after - before, threads.switches))
    };
    drop(begun);
    let measured = measured.await;
    stopped.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        times.extend(ended??);
    }
    let (took, turns, switches) = measured?;
    let (took, all) = (took.as_nanos(), first_turns + taken.load(Ordering::Relaxed));
    let times = times.join(",");
    Ok(format!("done {took} {turns} {all} {switches} {times}"))
}
