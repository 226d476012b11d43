//! The memory of these recipes.

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::time::sleep;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_testkit::Server;

use crate::kind::Kind;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many come before the first count, so that buffers have grown.
const FIRST: usize = 100;

/// How often the allocator is read for one count, and the interval: a ping may be under way.
const READINGS: u32 = 40;
const INTERVAL: Duration = Duration::from_millis(50);

/// The bytes of one of each kind.
///
/// # Errors
///
/// If the server does not serve.
pub(crate) async fn measure(server: &Server, number: usize) -> anyhow::Result<Vec<(Kind, f64)>> {
    let others = Session::connect(&server.connect_string()).await?;
    let queue = ExclusiveLock::new(&others, "/ours/queue")?;
    let holder = queue.acquire().await?;
    let session = Session::connect(&server.connect_string()).await?;
    let lock = |each: usize| ExclusiveLock::new(&session, format!("/ours/{each}"));
    let mut counted = Vec::new();

    let idle = async |each| Ok(lock(each)?);
    counted.push((Kind::Idle, of_each(number, idle, async |_| Ok(())).await?));

    let used = async |each| {
        let lock = lock(each)?;
        lock.acquire().await?.release().await?;
        Ok(lock)
    };
    counted.push((Kind::Used, of_each(number, used, async |_| Ok(())).await?));

    // Each hold gets a loss watch at the next probe.
    let watched = server.monitor().await?.watches;
    let all_watch = async |holds: usize| until_watches(server, watched + holds as u64).await;
    let hold = async |each| Ok(lock(each)?.acquire().await?);
    counted.push((Kind::Hold, of_each(number, hold, all_watch).await?));

    while server.monitor().await?.watches > watched {
        sleep(INTERVAL).await;
    }
    let all_wait = async |waiters: usize| {
        while queue.contenders().await?.len() <= waiters {
            sleep(INTERVAL).await;
        }
        until_watches(server, watched + waiters as u64).await
    };
    let waiter = async |_| {
        let waiting = Arc::new(ExclusiveLock::new(&session, "/ours/queue")?);
        Ok(tokio::spawn(
            async move { waiting.acquire().await.map(drop) },
        ))
    };
    counted.push((Kind::Waiter, of_each(number, waiter, all_wait).await?));
    session.close().await;
    holder.release().await?;
    others.close().await;
    Ok(counted)
}

/// By how many bytes the process grows for each of `number`, once they are `complete`.
async fn of_each<T>(
    number: usize,
    make: impl AsyncFn(usize) -> anyhow::Result<T>,
    complete: impl AsyncFn(usize) -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let mut kept = Vec::with_capacity(FIRST + number);
    for each in 0..FIRST {
        kept.push(Box::new(make(each).await?));
    }
    complete(FIRST).await?;
    let before = live().await;
    for each in FIRST..FIRST + number {
        kept.push(Box::new(make(each).await?));
    }
    complete(FIRST + number).await?;
    Ok((live().await - before) as f64 / number as f64)
}

/// The least number of live bytes within some seconds.
async fn live() -> isize {
    let mut least = isize::MAX;
    for _ in 0..READINGS {
        sleep(INTERVAL).await;
        let stats = ALLOCATOR.stats();
        let live = stats.bytes_allocated as isize - stats.bytes_deallocated as isize;
        least = least.min(live);
    }
    least
}

async fn until_watches(server: &Server, watches: u64) -> anyhow::Result<()> {
    while server.monitor().await?.watches < watches {
        sleep(INTERVAL).await;
    }
    Ok(())
}
