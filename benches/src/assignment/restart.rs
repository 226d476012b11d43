//! A rolling restart: one worker after the other ends and starts again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::Barrier;
use zookeeper_recipes_assignment::{AssignmentOptions, Partitions};
use zookeeper_recipes_testkit::Server;

use crate::ownership::{Ownership, Since};
use crate::size::{Size, Times};
use crate::worker::{End, Setting, Worker};

/// What a rolling restart did.
#[derive(Clone, Debug)]
pub(crate) struct Restart {
    pub(crate) size: Size,
    pub(crate) grace: Duration,
    /// How long it took, in seconds.
    pub(crate) took: f64,
    pub(crate) since: Since,
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
    for worker in workers.into_iter().flatten() {
        worker.end(End::Dies).await?;
    }
    Ok(Restart {
        size,
        grace,
        took,
        since,
    })
}
