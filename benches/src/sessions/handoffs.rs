//! How fast the contenders of a fleet hand locks on, and what that costs.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use zookeeper_recipes_benches::process::{java_heap, processor_time, resident};
use zookeeper_recipes_testkit::{Ensemble, Server};

use crate::library::Library;
use crate::party::in_order;
use crate::plan::Plan;

/// How long the contenders take turns before anything is counted.
const WARM_UP: Duration = Duration::from_secs(10);

/// How long a fleet whose contenders all stand still is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Handoffs {
    pub(crate) version: String,
    pub(crate) a_second: f64,
    /// From the call of the release until the next one holds, in milliseconds, in order.
    pub(crate) times: Vec<f64>,
    /// The processor time of all servers in each second.
    pub(crate) server_processors: f64,
    /// The live objects of all servers; `None` if the machine has no `jcmd`.
    pub(crate) server_heap: Option<u64>,
    pub(crate) server_bytes: u64,
    /// The processor time of the clients in each second.
    pub(crate) client_processors: f64,
    pub(crate) client_bytes: u64,
}

/// Counts the handoffs of a fleet.
pub(crate) async fn measure(
    library: &Library,
    ensemble: &Ensemble,
    plan: Plan,
) -> anyhow::Result<Handoffs> {
    let mut party = library.open(&ensemble.connect_string(), plan).await?;
    sleep(WARM_UP.min(10 * plan.time)).await;
    party.take().await?;
    let before = [
        processors(servers(ensemble)),
        processors(party.process().into_iter()),
    ];
    let began = Instant::now();
    let mut times = Vec::new();
    // On a busy machine a fleet can stand still for longer than a short time.
    while times.is_empty() && began.elapsed() < PATIENCE {
        sleep(plan.time).await;
        times.extend(party.take().await?);
    }
    let took = began.elapsed();
    let after = [
        processors(servers(ensemble)),
        processors(party.process().into_iter()),
    ];
    let times = in_order(times);
    let client_bytes = party.process().into_iter().filter_map(resident).sum();
    let server_bytes = servers(ensemble).filter_map(resident).sum();
    let server_heap = servers(ensemble).map(java_heap).sum();
    let version = party.version();
    party.end().await?;
    let share = |of: usize| (after[of] - before[of]).as_secs_f64() / took.as_secs_f64();
    Ok(Handoffs {
        version,
        a_second: times.len() as f64 / took.as_secs_f64(),
        times,
        server_processors: share(0),
        server_heap,
        server_bytes,
        client_processors: share(1),
        client_bytes,
    })
}

fn servers(ensemble: &Ensemble) -> impl Iterator<Item = u32> {
    ensemble.members().iter().filter_map(Server::process_id)
}

fn processors(processes: impl Iterator<Item = u32>) -> Duration {
    processes.filter_map(processor_time).sum()
}
