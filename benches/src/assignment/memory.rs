//! What a worker takes in memory: by itself, for each partition that exists, and for each of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::time::sleep;
use zookeeper_recipes_assignment::{AssignmentOperator, AssignmentOptions, Partitions};
use zookeeper_recipes_core::Session;
use zookeeper_recipes_testkit::Server;

use crate::allocations::live;
use crate::ownership::Ownership;
use crate::size::Times;
use crate::worker::{End, Setting, Worker};

/// The partitions of an assignment that shows what a worker takes by itself.
const FEW: usize = 10;

/// How often a wait looks.
const LOOK: Duration = Duration::from_millis(20);

/// The parts of what a worker takes, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) partitions: usize,
    /// A worker that owns nothing, of an assignment with few partitions.
    pub(crate) worker: f64,
    /// Each partition, owned or not, at a worker that does not lead.
    pub(crate) listed: f64,
    /// The same, at the leader.
    pub(crate) led: f64,
    /// Each partition that a worker owns, which does not lead.
    pub(crate) owned: f64,
}

/// The growth of what this process has allocated, in bytes.
#[derive(Clone, Copy, Debug)]
struct Growth {
    by_the_leader: f64,
    by_a_second_worker: f64,
    /// As the second worker gets all partitions.
    by_the_owned: f64,
}

/// Measures the parts in an assignment of few partitions, and in one of so many.
pub(crate) async fn measure(
    server: &Server,
    partitions: usize,
    times: Times,
) -> anyhow::Result<Memory> {
    let few = growth(server, FEW, times).await?;
    let many = growth(server, partitions, times).await?;
    let more = (partitions - FEW) as f64;
    Ok(Memory {
        partitions,
        worker: few.by_a_second_worker,
        listed: (many.by_a_second_worker - few.by_a_second_worker) / more,
        led: (many.by_the_leader - few.by_the_leader) / more,
        owned: (many.by_the_owned - few.by_the_owned) / more,
    })
}

async fn growth(server: &Server, partitions: usize, times: Times) -> anyhow::Result<Growth> {
    let session = Session::connect(&server.connect_string()).await?;
    let path = format!("/memory/{partitions}");
    let operator = AssignmentOperator::new(&session, &path)?;
    operator
        .set_partitions(Partitions::numbered(partitions))
        .await?;
    // Workers that are all drained own nothing.
    operator.drain("worker-0").await?;
    operator.drain("worker-1").await?;
    let ownership = Ownership::new(partitions, 2);
    let setting = Setting {
        connect_string: server.connect_string(),
        path,
        session_timeout: times.session_timeout,
        partitions: Partitions::numbered(partitions),
        options: AssignmentOptions::new(),
        ownership: ownership.clone(),
    };
    let (mut workers, mut seen) = (Vec::new(), vec![live().await]);
    for number in 0..2 {
        workers.push(Worker::start(number, &setting, Arc::new(Barrier::new(1))));
        let is_there = async || {
            let status = operator.status().await?;
            let there = status.workers.iter().filter(|worker| worker.is_there);
            anyhow::Ok(there.count() > number)
        };
        while !is_there().await? {
            sleep(LOOK).await;
        }
        sleep(times.rest).await;
        seen.push(live().await);
    }
    operator.undrain("worker-1").await?;
    ownership.until_owned_without(Some(0)).await?;
    sleep(times.rest).await;
    seen.push(live().await);
    for worker in workers {
        worker.end(End::Leaves).await?;
    }
    session.close().await;
    let grown = |from: usize| (seen[from + 1] - seen[from]) as f64;
    Ok(Growth {
        by_the_leader: grown(0),
        by_a_second_worker: grown(1),
        by_the_owned: grown(2),
    })
}
