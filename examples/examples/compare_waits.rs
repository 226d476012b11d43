//! The four ways to wait for a lock, side by side: the order of the holders, and how soon they
//! hold.
//!
//! `cargo run --example compare_waits`. With figures of their cost: `cargo xtask demo`.

use std::error::Error;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions, Recipe, SingleNodeLock, WaitStrategy};

const CONTENDERS: usize = 5;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let playground = Playground::open().await?;
    let poll = WaitStrategy::Poll(Duration::from_millis(100));
    let arrival: Vec<usize> = (0..CONTENDERS).collect();
    assert_eq!(
        pass(&playground, "predecessor", WaitStrategy::Predecessor).await?,
        arrival
    );
    assert_eq!(
        pass(&playground, "parent", WaitStrategy::Parent).await?,
        arrival
    );
    assert_eq!(pass(&playground, "poll", poll).await?, arrival);

    let mut order = pass_without_queue(&playground).await?;
    order.sort();
    assert_eq!(order, arrival, "each contender held, in any order");
    Ok(playground.close().await?)
}

/// Lets the contenders queue one after the other, and returns the order in which they held.
async fn pass(
    playground: &Playground,
    name: &str,
    strategy: WaitStrategy,
) -> Result<Vec<usize>, Box<dyn Error>> {
    let path = format!("/locks/{name}");
    let session = playground.connect().await?;
    let first = ExclusiveLock::new(&session, &path)?;
    let hold = first.acquire().await?;

    let (sender, mut holders) = mpsc::unbounded_channel();
    let mut sessions = Vec::new();
    for number in 0..CONTENDERS {
        let session = playground.connect().await?;
        let options = LockOptions::new().strategy(strategy);
        let lock = ExclusiveLock::with_options(&session, &path, options)?;
        tokio::spawn(hold_once(Box::new(lock), number, sender.clone()));
        sessions.push(session);
        while first.contenders().await?.len() < number + 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    drop(sender);

    let began = Instant::now();
    hold.release().await?;
    let mut order = Vec::new();
    while let Some(number) = holders.recv().await {
        order.push(number);
    }
    println!("{name:<11} {:>6.1?}: {order:?}", began.elapsed());
    Ok(order)
}

/// As `pass`, with the lock that has no queue, so that a contender is not listed while it waits.
async fn pass_without_queue(playground: &Playground) -> Result<Vec<usize>, Box<dyn Error>> {
    let session = playground.connect().await?;
    let hold = SingleNodeLock::new(&session, "/locks/single-node")?
        .acquire()
        .await?;

    let (sender, mut holders) = mpsc::unbounded_channel();
    for number in 0..CONTENDERS {
        let session = playground.connect().await?;
        let lock = SingleNodeLock::new(&session, "/locks/single-node")?;
        tokio::spawn(hold_once(Box::new(lock), number, sender.clone()));
    }
    drop(sender);

    let began = Instant::now();
    hold.release().await?;
    let mut order = Vec::new();
    while let Some(number) = holders.recv().await {
        order.push(number);
    }
    println!("{:<11} {:>6.1?}: {order:?}", "single node", began.elapsed());
    Ok(order)
}

/// Takes any recipe. A contender that fails is missing in the order.
async fn hold_once(recipe: Box<dyn Recipe>, number: usize, holders: mpsc::UnboundedSender<usize>) {
    match recipe.acquire_timeout(Duration::from_secs(10)).await {
        Ok(hold) => {
            // If the example has failed already, nobody receives this.
            let _ = holders.send(number);
            if let Err(error) = hold.release().await {
                eprintln!("contender {number}: {error}");
            }
        }
        Err(error) => eprintln!("contender {number}: {error}"),
    }
}
