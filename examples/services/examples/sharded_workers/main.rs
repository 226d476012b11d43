//! A service whose instances own shards: one is killed, one is drained, and the shards follow.
//!
//! `cargo run --example sharded_workers`
//!
//! `service.rs` is the service: use it as a template. This file starts three instances of it, each a
//! process of its own, and reads by HTTP which instance owns which shard.

mod service;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use zookeeper_recipes_assignment::AssignmentOperator;
use zookeeper_recipes_example_services::ask;
use zookeeper_recipes_examples::{Part, Playground, Process};

const SESSION_TIMEOUT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);

/// One instance of the service: runs until the process that started it orders it to end.
async fn instance(mut part: Part) -> anyhow::Result<()> {
    let session = part.connect_in_background()?;
    let id = part.name().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    part.say(&address).await?;
    let end = async move { while let Ok(Some(_)) = part.hear().await {} };
    service::run(session, id, address, listener, end).await
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
        let counts = owners.iter().map(|owner| ((*owner).to_owned(), share));
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
