//! Contenders of all sessions that take turns.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinSet;
use tokio::time::sleep;
use zookeeper_recipes_benches::process::{processor_time, resident};
use zookeeper_recipes_core::Session;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_testkit::{Ensemble, Server};

use crate::fleet::Fleet;
use crate::plan::Plan;

/// The contenders of each lock that is handed on: a holder, and those that wait.
pub(crate) const CONTENDERS: usize = 21;

/// How long the contenders take turns before anything is counted.
const WARM_UP: Duration = Duration::from_secs(10);

/// The handoffs of one time.
#[derive(Debug)]
pub(crate) struct Handoffs {
    pub(crate) queues: usize,
    pub(crate) a_second: f64,
    /// From the call of the release until the next one holds, in milliseconds, in order.
    pub(crate) times: Vec<f64>,
    /// The processor time of all servers in each second.
    pub(crate) server_processors: f64,
    /// The memory of all servers.
    pub(crate) server_bytes: u64,
}

/// A lock that its contenders hand on.
#[derive(Debug, Default)]
struct Queue {
    released: Option<Instant>,
    handoffs: Vec<Handoff>,
}

/// A contender that came to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handoff {
    pub(crate) at: Instant,
    pub(crate) took: Duration,
}

/// Contenders that take turns until they are stopped.
pub(crate) struct Turns {
    stopped: Arc<AtomicBool>,
    contenders: JoinSet<anyhow::Result<()>>,
    queues: Vec<Arc<Mutex<Queue>>>,
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turns {
    /// Lets each session contend for one lock.
    ///
    /// # Errors
    ///
    /// Never for these paths.
    pub(crate) fn begin(sessions: &[Session]) -> anyhow::Result<Turns> {
        let number = (sessions.len() / CONTENDERS).max(1);
        let mut turns = Turns {
            stopped: Arc::default(),
            contenders: JoinSet::new(),
            queues: (0..number).map(|_| Arc::default()).collect(),
        };
        for (place, session) in sessions.iter().enumerate() {
            let which = place % number;
            let contender = ExclusiveLock::new(session, format!("/handed-on/{which}"))?;
            let (stopped, queue) = (turns.stopped.clone(), turns.queues[which].clone());
            turns.contenders.spawn(async move {
                while !stopped.load(Ordering::Relaxed) {
                    let hold = contender.acquire().await?;
                    lock(&queue).acquired();
                    lock(&queue).released = Some(Instant::now());
                    hold.release().await?;
                }
                Ok(())
            });
        }
        Ok(turns)
    }

    /// Takes the handoffs since the last call, by lock.
    pub(crate) fn take(&self) -> Vec<Vec<Handoff>> {
        let queues = self.queues.iter();
        queues
            .map(|queue| mem::take(&mut lock(queue).handoffs))
            .collect()
    }

    /// Lets each contender end its turn.
    ///
    /// # Errors
    ///
    /// If a contender has failed.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        self.stopped.store(true, Ordering::Relaxed);
        while let Some(ended) = self.contenders.join_next().await {
            ended?.context("a contender has failed")?;
        }
        Ok(())
    }
}

impl Queue {
    fn acquired(&mut self) {
        let at = Instant::now();
        if let Some(released) = self.released.take() {
            let took = at - released;
            self.handoffs.push(Handoff { at, took });
        }
    }
}

/// Counts the handoffs of a fleet.
///
/// # Errors
///
/// If the servers do not serve.
pub(crate) async fn measure(ensemble: &Ensemble, plan: Plan) -> anyhow::Result<Handoffs> {
    let fleet = Fleet::open(&ensemble.connect_string(), plan).await?;
    let turns = Turns::begin(&fleet.sessions)?;
    sleep(WARM_UP.min(10 * plan.time)).await;
    turns.take();
    let (began, before) = (Instant::now(), processors(ensemble));
    sleep(plan.time).await;
    let (took, after) = (began.elapsed(), processors(ensemble));
    let handoffs = turns.take();
    let server_bytes = servers(ensemble).filter_map(resident).sum();
    turns.end().await?;
    fleet.close().await;
    let queues = handoffs.len();
    let times = handoffs.into_iter().flatten();
    let mut times: Vec<f64> = times.map(|it| it.took.as_secs_f64() * 1e3).collect();
    times.sort_unstable_by(f64::total_cmp);
    Ok(Handoffs {
        queues,
        a_second: times.len() as f64 / took.as_secs_f64(),
        times,
        server_processors: (after - before).as_secs_f64() / took.as_secs_f64(),
        server_bytes,
    })
}

fn servers(ensemble: &Ensemble) -> impl Iterator<Item = u32> {
    ensemble.members().iter().filter_map(Server::process_id)
}

fn processors(ensemble: &Ensemble) -> Duration {
    servers(ensemble).filter_map(processor_time).sum()
}
