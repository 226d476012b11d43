//! A semaphore: a limit on the jobs that a whole fleet of workers runs at a time.
//!
//! `cargo run --example semaphore`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_semaphore::{Semaphore, Session};

const PERMITS: u32 = 3;
const WORKERS: usize = 5;
/// What each worker's jobs need: the second one is twice as large as the others.
const JOBS: [u32; 3] = [1, 2, 1];

/// What runs at this moment, and the most that ever did, as the jobs themselves count it.
#[derive(Default)]
struct Load {
    now: AtomicU32,
    most: AtomicU32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let playground = Playground::open().await?;
    let load = Arc::new(Load::default());
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        // As in a fleet, each has a session of its own.
        let session = playground.connect().await?;
        workers.spawn(work(session, worker, load.clone()));
    }
    while let Some(finished) = workers.join_next().await {
        finished?.map_err(|error| -> Box<dyn Error> { error })?;
    }

    let most = load.most.load(Ordering::SeqCst);
    println!("never more than {most} of {PERMITS} permits in use");
    assert!((2..=PERMITS).contains(&most), "{most}");
    let session = playground.connect().await?;
    let semaphore = Semaphore::new(&session, "/limits/exports", PERMITS)?;
    assert_eq!(
        semaphore.available_permits().await?,
        PERMITS,
        "all are back"
    );
    assert!(semaphore.contenders().await?.is_empty(), "nobody is left");
    session.close().await;
    Ok(playground.close().await?)
}

async fn work(
    session: Session,
    worker: usize,
    load: Arc<Load>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let semaphore = Semaphore::new(&session, "/limits/exports", PERMITS)?;
    for weight in JOBS {
        let hold = semaphore.acquire_many(weight).await?;
        tokio::select! {
            () = export(weight, &load) => println!("worker {worker}: exported, with {weight}"),
            // The permits may be another's in a moment.
            reason = hold.lost() => return Err(reason.into()),
        }
        hold.release().await?;
    }
    session.close().await;
    Ok(())
}

async fn export(weight: u32, load: &Load) {
    let now = load.now.fetch_add(weight, Ordering::SeqCst) + weight;
    load.most.fetch_max(now, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(50)).await;
    load.now.fetch_sub(weight, Ordering::SeqCst);
}
