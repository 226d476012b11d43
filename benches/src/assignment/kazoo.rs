//! kazoo's `SetPartitioner` at the same work. Each worker is a process.

use std::time::Duration;

use anyhow::Context;
use tokio::task::JoinSet;
use zookeeper_recipes_benches::report::target;
use zookeeper_recipes_benches::wire::Wire;
use zookeeper_recipes_interop::{Peer, Program, ProgramError};
use zookeeper_recipes_testkit::Server;

use crate::ownership::Ownership;
use crate::phases::{Clock, Phase};
use crate::size::{Size, Times};

/// Longer than a worker owns the same.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// A process with a partitioner. Dropping the value kills the process.
struct Worker {
    peer: Option<Peer>,
    number: usize,
    ownership: Ownership,
    following: JoinSet<()>,
}

/// The phases of kazoo; none if the machine lacks it.
pub(crate) async fn measure(
    server: &Server,
    size: Size,
    times: Times,
) -> anyhow::Result<Vec<Phase>> {
    let program = match Program::kazoo(&target()) {
        Ok(program) => program,
        Err(missing @ ProgramError::Missing { .. }) => {
            eprintln!("{missing}");
            return Ok(Vec::new());
        }
        Err(broken) => return Err(broken.into()),
    };
    let wire = Wire::to(server).await?;
    let ownership = Ownership::new(size.partitions, size.workers + 1);
    let clock = || Clock::start(&wire, server, &ownership, times.rest);
    let start = async |number: usize| {
        let mut command = program.command();
        command.arg(wire.connect_string());
        command.args([&*times.session_timeout.as_millis().to_string(), "partition"]);
        command.args([size.partitions.to_string(), number.to_string()]);
        anyhow::Ok(Worker {
            peer: Some(Peer::start("kazoo", command).await?),
            number,
            ownership: ownership.clone(),
            following: JoinSet::new(),
        })
    };
    let mut workers = Vec::new();
    for number in 0..size.workers {
        workers.push(start(number).await?);
    }
    let mut present: Vec<usize> = (0..size.workers).collect();
    let begun = clock();
    for worker in &mut workers {
        worker.begin().await?;
    }
    let started = begun.phase("start", "kazoo", size, &present, None).await?;

    let victim = size.workers - 1;
    present.truncate(victim);
    let begun = clock();
    workers.truncate(victim);
    ownership.set(victim, &[]);
    let died = begun
        .phase("death", "kazoo", size, &present, Some(victim))
        .await?;

    let mut last = start(size.workers).await?;
    present.push(size.workers);
    let begun = clock();
    last.begin().await?;
    let mut arrived = begun
        .phase("arrival", "kazoo", size, &present, None)
        .await?;
    arrived.owned = None;
    Ok(vec![started, died, arrived])
}

impl Worker {
    /// Lets the worker join, and notes what it owns, until it is dropped.
    async fn begin(&mut self) -> anyhow::Result<()> {
        let mut peer = self.peer.take().context("it has begun")?;
        peer.order("begin").await?;
        let (number, ownership) = (self.number, self.ownership.clone());
        self.following.spawn(async move {
            while let Ok(owned) = peer.answer("owns", LONG).await {
                let owned: Vec<usize> = owned.split_whitespace().flat_map(str::parse).collect();
                ownership.set(number, &owned);
            }
        });
        Ok(())
    }
}
