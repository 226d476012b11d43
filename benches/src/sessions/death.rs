//! The seconds after a member of the ensemble dies.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::time::{interval, sleep};
use zookeeper_recipes_testkit::Ensemble;
use zookeeper_recipes_testkit::proxy::{Operation, Proxy};

use crate::library::Library;
use crate::party::Recovery;
use crate::plan::{AFTER, Plan};

/// How long the contenders take turns before the death.
const BEFORE: Duration = Duration::from_secs(5);

/// The time between two samples.
const SAMPLE: Duration = Duration::from_millis(100);

/// What the fleet has sent until a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Since the death, in seconds.
    pub(crate) at: f64,
    pub(crate) connections: u64,
    pub(crate) probes: u64,
    pub(crate) lists: u64,
    pub(crate) watches_set_again: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

#[derive(Debug)]
pub(crate) struct Death {
    /// The sessions that were connected to the member that died.
    pub(crate) bereft: usize,
    /// The sums at the end of each interval, from the moment of the death.
    pub(crate) samples: Vec<Sample>,
    pub(crate) recovery: Recovery,
    /// The locks that all sessions held before the death, and ten seconds after it.
    pub(crate) held: [usize; 2],
}

/// Kills a follower, and watches the fleet.
pub(crate) async fn measure(
    library: &Library,
    ensemble: &mut Ensemble,
    plan: Plan,
) -> anyhow::Result<Death> {
    let follower = *ensemble.followers().await?.first().context("a follower")?;
    let mut proxies = Vec::new();
    for member in ensemble.members() {
        proxies.push(Proxy::start(member.connect_string()).await?);
    }
    let addresses: Vec<String> = proxies.iter().map(Proxy::connect_string).collect();
    let mut party = library.open(&addresses.join(","), plan).await?;
    sleep(BEFORE.min(10 * plan.time)).await;
    let held_before = party.held().await?;
    let bereft = proxies[follower].connections();
    proxies[follower].refuse_connections();
    ensemble.members_mut()[follower].kill().await?;
    let died = Instant::now();
    party.died().await?;
    let samples = sample(&proxies, died).await;
    let recovery = party.recovery().await?;
    let held_after = party.held().await?;
    party.end().await?;
    Ok(Death {
        bereft,
        samples,
        recovery,
        held: [held_before, held_after],
    })
}

/// Reads what has passed through the proxies, again and again.
async fn sample(proxies: &[Proxy], died: Instant) -> Vec<Sample> {
    let mut samples = vec![now(proxies, died)];
    let mut ticks = interval(SAMPLE);
    while died.elapsed() < AFTER {
        ticks.tick().await;
        samples.push(now(proxies, died));
    }
    samples
}

fn now(proxies: &[Proxy], died: Instant) -> Sample {
    let mut sample = Sample {
        at: died.elapsed().as_secs_f64(),
        ..Sample::default()
    };
    for proxy in proxies {
        let counters = proxy.counters();
        let sent = |operation| counters.of(operation).requests;
        sample.connections += sent(Operation::Connect);
        sample.probes += sent(Operation::Sync);
        sample.lists += sent(Operation::GetChildren);
        sample.watches_set_again += sent(Operation::SetWatches);
        sample.reads += sent(Operation::GetData) + sent(Operation::Exists);
        let writes = [Operation::Create, Operation::Delete, Operation::SetData];
        sample.writes += writes.into_iter().map(sent).sum::<u64>() + sent(Operation::Multi);
    }
    sample
}
