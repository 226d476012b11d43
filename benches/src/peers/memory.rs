//! The memory of a waiter.

use std::time::Duration;

use anyhow::Context;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::process::resident;

use crate::driver::{Driver, PATIENCE};
use crate::peer::Peer;
use crate::plan::Plan;

/// The interval between two looks at the server's watches.
const LOOK: Duration = Duration::from_millis(5);

/// After this time without a new watch, all waiters wait.
const SETTLED: Duration = Duration::from_secs(1);

/// How many waiters come together.
///
/// If all of them did, the figure would be the burst of the replies to their lists.
const AT_A_TIME: usize = 20;

/// By how many bytes a process grows for each waiter; `None` if the system does not report it.
///
/// The process is new: memory that an earlier measurement had freed would hide the growth.
pub(crate) async fn memory_of_a_waiter(
    testbed: &Testbed,
    plan: &Plan,
    peer: Peer,
    path: &str,
) -> anyhow::Result<Option<f64>> {
    let mut driver = Driver::start(peer, &testbed.server().connect_string()).await?;
    let mut sizes = Vec::new();
    let mut watches = 0;
    for more in plan.waiters {
        for _ in 0..more / AT_A_TIME {
            driver.queue("waiters", path, AT_A_TIME).await?;
            // Each waiter has a watch at least.
            watches += AT_A_TIME as u64;
            timeout(PATIENCE, until_watches(testbed, watches))
                .await
                .with_context(|| format!("{} does not come to wait", peer.name()))??;
        }
        timeout(PATIENCE, until_settled(testbed))
            .await
            .with_context(|| format!("{} does not settle", peer.name()))??;
        let heap = driver.heap_in_use().await?;
        match driver.process_id().and_then(resident) {
            Some(resident) => sizes.push((resident + heap) as f64),
            None => return Ok(None),
        }
    }
    driver.end().await?;
    Ok(Some((sizes[1] - sizes[0]) / plan.waiters[1] as f64))
}

/// Waits until the server has at least this number of watches.
async fn until_watches(testbed: &Testbed, watches: u64) -> anyhow::Result<()> {
    while testbed.server().monitor().await?.watches < watches {
        sleep(LOOK).await;
    }
    Ok(())
}

/// Waits until no new watch has come for a while.
async fn until_settled(testbed: &Testbed) -> anyhow::Result<()> {
    let watches = || async { anyhow::Ok(testbed.server().monitor().await?.watches) };
    let mut last = (watches().await?, Instant::now());
    while last.1.elapsed() < SETTLED {
        sleep(LOOK).await;
        let watches = watches().await?;
        if watches != last.0 {
            last = (watches, Instant::now());
        }
    }
    Ok(())
}
