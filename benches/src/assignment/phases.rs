//! A start of all workers, the death of one, and the arrival of another one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::Barrier;
use tokio::time::sleep;
use zookeeper_recipes_assignment::{AssignmentOptions, Partitions};
use zookeeper_recipes_benches::wire::{Reading, Wire};
use zookeeper_recipes_core::Session;
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_testkit::Server;

use crate::ownership::Ownership;
use crate::size::{Size, Times};
use crate::worker::{End, Setting, Worker};

#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) what: &'static str,
    pub(crate) library: &'static str,
    pub(crate) size: Size,
    /// Until each partition has an owner, in seconds. None if each always has one but for moves.
    pub(crate) owned: Option<f64>,
    /// Until the workers own the same number, or one more.
    pub(crate) balanced: f64,
    /// The partitions that got an owner, one that gets several counted as often.
    pub(crate) grants: u32,
    /// The mean time without an owner of all partitions, in seconds.
    pub(crate) without_owner: f64,
    pub(crate) requests: u64,
    pub(crate) writes: u64,
    pub(crate) bytes: u64,
    /// The watches at the server at the end.
    pub(crate) watches: u64,
}

/// What is counted from the beginning of a phase.
pub(crate) struct Clock<'a> {
    began: Instant,
    before: Reading,
    wire: &'a Wire,
    server: &'a Server,
    ownership: &'a Ownership,
    /// How long the sessions are left alone at the end. A hold gets its loss watch in that time.
    rest: Duration,
}

impl<'a> Clock<'a> {
    pub(crate) fn start(
        wire: &'a Wire,
        server: &'a Server,
        ownership: &'a Ownership,
        rest: Duration,
    ) -> Clock<'a> {
        ownership.reset();
        Clock {
            began: Instant::now(),
            before: wire.read(),
            wire,
            server,
            ownership,
            rest,
        }
    }

    /// Waits until all is owned and balanced by these workers, and rests.
    pub(crate) async fn phase(
        self,
        what: &'static str,
        library: &'static str,
        size: Size,
        workers: &[usize],
        absent: Option<usize>,
    ) -> anyhow::Result<Phase> {
        self.ownership.until_owned_without(absent).await?;
        let owned = self.began.elapsed().as_secs_f64();
        self.ownership.until_balanced(workers).await?;
        let balanced = self.began.elapsed().as_secs_f64();
        let since = self.ownership.since_reset();
        sleep(self.rest).await;
        let traffic = self.before.until(&self.wire.read());
        Ok(Phase {
            what,
            library,
            size,
            owned: Some(owned),
            balanced,
            grants: since.grants,
            without_owner: since.without_owner / size.partitions as f64,
            requests: traffic.requests,
            writes: traffic.writes,
            bytes: traffic.bytes,
            watches: self.server.monitor().await?.watches,
        })
    }
}

/// The phases of one size.
pub(crate) async fn measure(
    server: &Server,
    size: Size,
    times: Times,
) -> anyhow::Result<Vec<Phase>> {
    let wire = Wire::to(server).await?;
    let observer = Session::connect(&server.connect_string()).await?;
    let ownership = Ownership::new(size.partitions, size.workers + 1);
    let setting = Setting {
        connect_string: wire.connect_string(),
        path: format!("/ours/{}-{}", size.partitions, size.workers),
        session_timeout: times.session_timeout,
        partitions: Partitions::numbered(size.partitions),
        options: AssignmentOptions::new(),
        ownership: ownership.clone(),
    };
    let clock = || Clock::start(&wire, server, &ownership, times.rest);
    let ready = Arc::new(Barrier::new(size.workers + 1));
    let start = |number| Some(Worker::start(number, &setting, ready.clone()));
    let mut workers: Vec<Option<Worker>> = (0..size.workers).map(start).collect();
    ready.wait().await;
    let mut present: Vec<usize> = (0..size.workers).collect();
    let begun = clock();
    let started = begun.phase("start", "ours", size, &present, None).await?;

    let victim = follower(&observer, &setting, size.workers).await?;
    let dying = workers[victim].take().context("a worker")?;
    present.retain(|worker| *worker != victim);
    let begun = clock();
    dying.end(End::Dies).await?;
    let died = begun
        .phase("death", "ours", size, &present, Some(victim))
        .await?;

    let ready = Arc::new(Barrier::new(2));
    workers.push(Some(Worker::start(size.workers, &setting, ready.clone())));
    present.push(size.workers);
    ready.wait().await;
    let begun = clock();
    let mut arrived = begun.phase("arrival", "ours", size, &present, None).await?;
    arrived.owned = None;

    for worker in workers.into_iter().flatten() {
        worker.end(End::Dies).await?;
    }
    observer.close().await;
    Ok(vec![started, died, arrived])
}

/// A worker that does not lead.
async fn follower(observer: &Session, setting: &Setting, workers: usize) -> anyhow::Result<usize> {
    let path = format!("{}/leader", setting.path);
    let election = LeaderElection::new(observer, path, "observer")?;
    let contenders = election.contenders().await?;
    let leader = contenders.first().and_then(|first| first.owner.clone());
    let leader = leader.context("a leader")?;
    let mut others = (0..workers).filter(|number| format!("worker-{number}") != leader);
    others.next_back().context("a worker that does not lead")
}
