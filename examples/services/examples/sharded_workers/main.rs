//! A service whose instances own shards: one is killed, one is drained, and the shards follow.
//!
//! `cargo run --example sharded_workers`. With the environment variable `HUNG` set to anything, one of
//! the instances gives no shard away, and the others continue without it.
//!
//! `service.rs` is the service, to be copied. This file starts three instances of it, each a
//! process of its own, and reads by HTTP which instance owns which shard.

mod service;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use zookeeper_recipes_assignment::{AssignmentOperator, Partition, Session, WorkerStatus};
use zookeeper_recipes_example_services::ask;
use zookeeper_recipes_examples::{Part, Playground, Process};

const SESSION_TIMEOUT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);

/// The instance whose work never ends.
const HUNG: &str = "worker-hung";

/// One instance of the service: runs until the process that started it orders it to end.
async fn instance(mut part: Part) -> anyhow::Result<()> {
    let session = part.connect_in_background()?;
    let id = part.name().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    part.say(&address).await?;
    let end = async move { while let Ok(Some(_)) = part.hear().await {} };
    match id.as_str() {
        HUNG => service::run(session, id, address, listener, hang, end).await,
        _ => service::run(session, id, address, listener, service::consume, end).await,
    }
}

/// Work with a mistake: it blocks its thread for good, so that nothing can drop it.
async fn hang(owned: Partition) -> std::io::Result<()> {
    owned.draining().await;
    loop {
        std::thread::park();
    }
}

/// A running instance, as the example sees it.
struct Instance {
    process: Process,
    address: String,
}

impl Instance {
    async fn start(playground: &Playground, id: &str) -> Result<Instance, Box<dyn Error>> {
        let mut process = playground.start(id)?;
        let address = process.hear().await?;
        Ok(Instance { process, address })
    }

    /// How many shards each instance owns, as this instance knows it.
    async fn counts(&self) -> Result<BTreeMap<String, usize>, Box<dyn Error>> {
        let page = ask(&self.address, "GET", "/", "").await?;
        let page = page.ok_or("no page")?;
        let mut counts = BTreeMap::new();
        for line in page.lines() {
            let owner = line.split(' ').nth(1).ok_or("no owner")?;
            *counts.entry(owner.to_owned()).or_default() += 1;
        }
        Ok(counts)
    }

    /// Waits until each of these instances owns the same number of shards.
    async fn until_owned_by(&self, owners: &[&str]) -> Result<(), Box<dyn Error>> {
        let share = service::SHARDS / owners.len();
        let counts: Vec<_> = owners.iter().map(|owner| (*owner, share)).collect();
        self.until(&counts).await
    }

    /// Waits until the instances own so many shards.
    async fn until(&self, counts: &[(&str, usize)]) -> Result<(), Box<dyn Error>> {
        let counts = counts
            .iter()
            .map(|(owner, count)| ((*owner).to_owned(), *count));
        let expected = counts.collect();
        let deadline = Instant::now() + PATIENCE;
        while self.counts().await? != expected {
            if Instant::now() > deadline {
                return Err(format!("{:?} in place of {expected:?}", self.counts().await?).into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Some(part) = Part::of_this_process() {
        return Ok(instance(part).await?);
    }

    let playground = Playground::open_with(SESSION_TIMEOUT).await?;
    let session = playground.connect().await?;
    if std::env::var_os("HUNG").is_some() {
        hung(&playground, &session).await?;
        session.close().await;
        return Ok(playground.close().await?);
    }
    let one = Instance::start(&playground, "worker-1").await?;
    let two = Instance::start(&playground, "worker-2").await?;
    let three = Instance::start(&playground, "worker-3").await?;
    one.until_owned_by(&["worker-1", "worker-2", "worker-3"])
        .await?;
    println!(
        "each of three workers owns a third of {} shards",
        service::SHARDS
    );

    three.process.kill().await?;
    let died = Instant::now();
    one.until_owned_by(&["worker-1", "worker-2"]).await?;
    println!(
        "worker-3 was killed, and its shards are owned again after {:.1?}",
        died.elapsed()
    );

    let operator = AssignmentOperator::new(&session, service::PATH)?;
    operator.drain("worker-2").await?;
    let drained = Instant::now();
    one.until_owned_by(&["worker-1"]).await?;
    println!(
        "worker-2 was drained, and worker-1 owns all after {:.1?}",
        drained.elapsed()
    );

    // The instances are shut down in good order.
    two.process.end().await?;
    one.process.end().await?;
    session.close().await;
    Ok(playground.close().await?)
}

/// One of three instances hangs. Another one comes, and one is drained.
async fn hung(playground: &Playground, session: &Session) -> Result<(), Box<dyn Error>> {
    let one = Instance::start(playground, "worker-1").await?;
    let two = Instance::start(playground, "worker-2").await?;
    let three = Instance::start(playground, HUNG).await?;
    one.until_owned_by(&["worker-1", "worker-2", HUNG]).await?;
    let four = Instance::start(playground, "worker-4").await?;
    let came = Instant::now();
    let counts = [("worker-1", 3), ("worker-2", 3), (HUNG, 4), ("worker-4", 2)];
    one.until(&counts).await?;
    println!(
        "worker-4 owns its shards of the others after {:.1?}",
        came.elapsed()
    );

    let operator = AssignmentOperator::new(session, service::PATH)?;
    let mut status = operator.watch_status().await?;
    let is_aside = |worker: &WorkerStatus| worker.set_aside && worker.id == HUNG;
    status
        .wait_for(|status| status.workers.iter().any(is_aside))
        .await?;
    println!("{HUNG} is set aside after {:.1?}", came.elapsed());

    operator.drain("worker-2").await?;
    let drained = Instant::now();
    let is_drained = |worker: &WorkerStatus| worker.id == "worker-2" && worker.owned == 0;
    let drained_status = status
        .wait_for(|status| status.workers.iter().any(is_drained))
        .await?
        .clone();
    println!("worker-2 was drained after {:.1?}", drained.elapsed());
    for worker in &drained_status.workers {
        let note = if worker.set_aside { ", set aside" } else { "" };
        println!("  {} owns {}{note}", worker.id, worker.owned);
    }

    three.process.kill().await?;
    let died = Instant::now();
    one.until_owned_by(&["worker-1", "worker-4"]).await?;
    println!(
        "{HUNG} was killed, and its shards are owned again after {:.1?}",
        died.elapsed()
    );
    for instance in [two, four, one] {
        instance.process.end().await?;
    }
    Ok(())
}
