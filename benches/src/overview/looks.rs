//! What a look costs, and what keeps an overview up to date.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::sync::watch;
use zookeeper_recipes_benches::threads::Threads;
use zookeeper_recipes_benches::wire::{Traffic, Wire};
use zookeeper_recipes_benches::{SESSION_TIMEOUT, Testbed};
use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_overview::{LiveOverview, Overview};

use crate::allocations::live;
use crate::load::Load;
use crate::tree::{PAUSE, ROOT, Tree, raw};

/// One look at all queues.
pub(crate) struct Look {
    pub(crate) queues: usize,
    pub(crate) contenders: usize,
    pub(crate) seconds: f64,
    /// Without the look's one sync.
    pub(crate) traffic: Traffic,
    pub(crate) bytes_in_memory: f64,
}

/// An overview that is kept up to date.
pub(crate) struct Follow {
    pub(crate) queues: usize,
    /// Until the first overview is there.
    pub(crate) first: f64,
    pub(crate) bytes_in_memory: f64,
    /// While nothing changes: without the sync of each look.
    pub(crate) at_rest: Rates,
    /// While locks are handed on.
    pub(crate) under_load: Rates,
    pub(crate) handoffs: f64,
    /// The longest time between two looks.
    pub(crate) longest: f64,
}

/// By the second.
#[derive(Clone, Copy)]
pub(crate) struct Rates {
    pub(crate) traffic: Traffic,
    pub(crate) seconds: f64,
    /// What this process has computed, in seconds.
    pub(crate) processor: f64,
}

impl Rates {
    pub(crate) fn each(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }
}

/// A session that looks. A meter would hide the watch of a tree.
pub(crate) async fn viewer(connect_string: &str) -> anyhow::Result<Session> {
    let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
    Ok(Session::connect_with(connect_string, options).await?)
}

/// Looks twice: directly, to take the time, and through a proxy that counts.
pub(crate) async fn look(testbed: &Testbed, tree: &Tree) -> anyhow::Result<Look> {
    let direct = viewer(&testbed.server().connect_string()).await?;
    let wire = Wire::to(testbed.server()).await?;
    let counted = viewer(&wire.connect_string()).await?;
    let before = live().await;
    let began = Instant::now();
    let overview = Overview::below(&direct, ROOT).await?;
    let seconds = began.elapsed().as_secs_f64();
    let bytes_in_memory = (live().await - before) as f64;
    check(&overview, tree)?;
    drop(overview);
    let reading = wire.read();
    check(&Overview::below(&counted, ROOT).await?, tree)?;
    let traffic = reading.until(&wire.read());
    direct.close().await;
    counted.close().await;
    Ok(Look {
        queues: tree.queues(),
        contenders: tree.contenders(),
        seconds,
        traffic,
        bytes_in_memory,
    })
}

fn check(overview: &Overview, tree: &Tree) -> anyhow::Result<()> {
    let contenders: usize = overview.queues().iter().map(|queue| queue.len()).sum();
    ensure!(tree.is_open(), "a session of the contenders is over");
    ensure!(
        contenders >= tree.contenders() && overview.queues().len() >= tree.queues(),
        "{} queues and {contenders} contenders are shown",
        overview.queues().len()
    );
    ensure!(overview.circles().is_empty(), "{:?}", overview.circles());
    Ok(())
}

/// Keeps an overview up to date through a proxy that counts, at first while nothing changes.
pub(crate) async fn follow(
    testbed: &Testbed,
    tree: &Tree,
    handoffs: u32,
    time: Duration,
) -> anyhow::Result<Follow> {
    let wire = Wire::to(testbed.server()).await?;
    let counted = viewer(&wire.connect_string()).await?;
    let working = viewer(&testbed.server().connect_string()).await?;
    let mut load = Load::new(raw(&working).await?).await?;
    let (_, alone) = rates(&wire, load.run(handoffs, time)).await?;
    let before = live().await;
    let began = Instant::now();
    let mut overviews = Overview::watch(&counted, ROOT, PAUSE).await?;
    let first = began.elapsed().as_secs_f64();
    let bytes_in_memory = (live().await - before) as f64;
    check(&overviews.borrow().overview, tree)?;
    overviews.changed().await?;
    let rest = async {
        tokio::time::sleep(time).await;
        Ok(())
    };
    let ((), at_rest) = rates(&wire, rest).await?;
    let mut longest = Duration::ZERO;
    let load_and_observe = async {
        tokio::select! {
            done = load.run(handoffs, time) => done,
            ended = observe(overviews.clone(), &mut longest) => ended,
        }
    };
    let (done, mut under_load) = rates(&wire, load_and_observe).await?;
    under_load.processor -= alone.processor;
    let last = overviews.borrow().clone();
    ensure!(last.is_watched && last.failures == 0, "{:?}", last.error);
    check(&last.overview, tree)?;
    drop((overviews, last));
    load.end().await?;
    counted.close().await;
    working.close().await;
    Ok(Follow {
        queues: tree.queues(),
        first,
        bytes_in_memory,
        at_rest,
        handoffs: under_load.each(done),
        under_load,
        longest: longest.as_secs_f64(),
    })
}

/// Does this work, and counts meanwhile.
async fn rates<T>(
    wire: &Wire,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<(T, Rates)> {
    let (reading, threads, began) = (wire.read(), Threads::now(), Instant::now());
    let done = work.await?;
    let rates = Rates {
        traffic: reading.until(&wire.read()),
        seconds: began.elapsed().as_secs_f64(),
        processor: (Threads::now() - threads).processor.as_secs_f64(),
    };
    Ok((done, rates))
}

/// Notes the longest time between two looks.
async fn observe(
    mut overviews: watch::Receiver<LiveOverview>,
    longest: &mut Duration,
) -> anyhow::Result<u64> {
    let mut last = overviews.borrow_and_update().looked_at;
    loop {
        overviews.changed().await?;
        let looked_at = overviews.borrow_and_update().looked_at;
        *longest = (*longest).max(looked_at - last);
        last = looked_at;
    }
}
