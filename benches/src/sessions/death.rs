//! The seconds after a member of the ensemble dies.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_testkit::Ensemble;
use zookeeper_recipes_testkit::proxy::{Operation, Proxy};

use crate::fleet::Fleet;
use crate::plan::Plan;
use crate::turns::Turns;

/// How long the fleet is watched after the death, and before it.
const AFTER: Duration = Duration::from_secs(10);
const BEFORE: Duration = Duration::from_secs(5);

/// The time between two samples.
pub(crate) const SAMPLE: Duration = Duration::from_millis(100);

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
}

/// What became of the fleet.
#[derive(Debug)]
pub(crate) struct Death {
    /// The sessions that were connected to the member that died.
    pub(crate) bereft: usize,
    /// The sums at the end of each interval, from the moment of the death.
    pub(crate) samples: Vec<Sample>,
    /// When a fresh lock of each session had been acquired and released, in seconds, in order.
    pub(crate) works_after: Vec<f64>,
    /// The longest time without a handoff of each lock that is handed on, in seconds, in order.
    pub(crate) gaps: Vec<f64>,
    /// The locks that all sessions held before, and those that they hold still.
    pub(crate) held: [usize; 2],
}

/// Kills a follower, and watches the fleet.
///
/// # Errors
///
/// If the fleet or the servers fail.
pub(crate) async fn measure(ensemble: &mut Ensemble, plan: Plan) -> anyhow::Result<Death> {
    let follower = *ensemble.followers().await?.first().context("a follower")?;
    let mut proxies = Vec::new();
    for member in ensemble.members() {
        proxies.push(Proxy::start(member.connect_string()).await?);
    }
    let addresses: Vec<String> = proxies.iter().map(Proxy::connect_string).collect();
    let fleet = Fleet::open(&addresses.join(","), plan).await?;
    let turns = Turns::begin(&fleet.sessions)?;
    sleep(BEFORE).await;
    let (held_before, bereft) = (fleet.held(), proxies[follower].connections());
    turns.take();
    proxies[follower].refuse_connections();
    ensemble.members_mut()[follower].kill().await?;
    let died = Instant::now();
    let mut working = JoinSet::new();
    for (number, session) in fleet.sessions.iter().enumerate() {
        let lock = ExclusiveLock::new(session, format!("/after/{number}"))?;
        working.spawn(async move {
            lock.acquire().await?.release().await?;
            anyhow::Ok(died.elapsed().as_secs_f64())
        });
    }
    let samples = sample(&proxies, died).await;
    let gaps = turns.take().into_iter().map(|handoffs| {
        let ends = handoffs
            .iter()
            .map(|handoff| handoff.at)
            .chain([died + AFTER]);
        let begins = [died].into_iter().chain(handoffs.iter().map(|it| it.at));
        let gaps = ends
            .zip(begins)
            .map(|(end, begin)| end.saturating_duration_since(begin));
        gaps.max().unwrap_or(AFTER).as_secs_f64()
    });
    let mut gaps: Vec<f64> = gaps.collect();
    gaps.sort_unstable_by(f64::total_cmp);
    let mut works_after = Vec::new();
    while let Some(works) = working.join_next().await {
        works_after.push(works??);
    }
    works_after.sort_unstable_by(f64::total_cmp);
    let held = [held_before, fleet.held()];
    turns.end().await?;
    fleet.close().await;
    Ok(Death {
        bereft,
        samples,
        works_after,
        gaps,
        held,
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
    }
    sample
}
