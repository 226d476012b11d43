//! A rolling restart: one worker after the other ends and starts again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::{Barrier, oneshot};
use tokio::task::JoinHandle;
use tokio::time::interval;
use zookeeper_recipes_assignment::{AssignmentOptions, Partitions};
use zookeeper_recipes_testkit::Server;

use crate::ownership::{Ownership, Since};
use crate::size::{Size, Times};
use crate::worker::{End, Setting, Worker};

/// The time between two samples.
const SAMPLE: Duration = Duration::from_millis(20);

/// What a rolling restart did.
#[derive(Clone, Debug)]
pub(crate) struct Restart {
    pub(crate) size: Size,
    pub(crate) grace: Duration,
    /// How long it took, in seconds.
    pub(crate) took: f64,
    pub(crate) since: Since,
    pub(crate) samples: Vec<Sample>,
}

/// The partitions of each worker at a moment, in seconds from the beginning.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) at: f64,
    pub(crate) by_worker: Vec<usize>,
}

/// Restarts each worker. The next one follows once all is owned and balanced again.
///
/// # Errors
///
/// If the server or a worker fails.
pub(crate) async fn measure(
    server: &Server,
    size: Size,
    grace: Duration,
    times: Times,
) -> anyhow::Result<Restart> {
    let ownership = Ownership::new(size.partitions, size.workers);
    let setting = Setting {
        connect_string: server.connect_string(),
        path: format!("/restart/{}-{}", size.workers, grace.as_secs()),
        session_timeout: times.session_timeout,
        partitions: Partitions::numbered(size.partitions),
        options: AssignmentOptions::new().grace(grace),
        ownership: ownership.clone(),
    };
    let start = |number| Worker::start(number, &setting, Arc::new(Barrier::new(1)));
    let mut workers: Vec<Option<Worker>> = (0..size.workers).map(|it| Some(start(it))).collect();
    let all: Vec<usize> = (0..size.workers).collect();
    ownership.until_balanced(&all).await?;
    ownership.reset();
    let began = Instant::now();
    let (enough, sampling) = sample(ownership.clone(), began);
    for number in 0..size.workers {
        let leaving = workers[number].take().context("a worker")?;
        leaving.end(End::Leaves).await?;
        if grace.is_zero() {
            ownership.until_owned_without(Some(number)).await?;
        }
        workers[number] = Some(start(number));
        ownership.until_balanced(&all).await?;
    }
    let took = began.elapsed().as_secs_f64();
    let since = ownership.since_reset();
    let _ = enough.send(());
    let samples = sampling.await?;
    for worker in workers.into_iter().flatten() {
        worker.end(End::Dies).await?;
    }
    Ok(Restart {
        size,
        grace,
        took,
        since,
        samples,
    })
}

/// Notes the weight of what each worker owns, again and again, until it is enough.
pub(crate) fn sample(
    ownership: Ownership,
    began: Instant,
) -> (oneshot::Sender<()>, JoinHandle<Vec<Sample>>) {
    let (enough, mut is_enough) = oneshot::channel();
    let sampling = tokio::spawn(async move {
        let mut samples = Vec::new();
        let mut ticks = interval(SAMPLE);
        let mut is_over = false;
        loop {
            samples.push(Sample {
                at: began.elapsed().as_secs_f64(),
                by_worker: ownership.by_worker(),
            });
            if is_over {
                return samples;
            }
            tokio::select! {
                _ = &mut is_enough => is_over = true,
                _ = ticks.tick() => {}
            }
        }
    });
    (enough, sampling)
}
