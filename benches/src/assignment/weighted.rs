//! Partitions with weights, of which one moves at a time: the moves come to rest.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Barrier;
use tokio::time::sleep;
use zookeeper_recipes_assignment::{AssignmentOptions, Partitions};
use zookeeper_recipes_testkit::Server;

use crate::ownership::{Ownership, Since};
use crate::restart::{Sample, sample};
use crate::size::Times;
use crate::worker::{End, Setting, Worker};

const WEIGHTS: [usize; 12] = [1, 2, 2, 5, 7, 2, 3, 1, 4, 6, 2, 1];

const WORKERS: usize = 4;

/// What workers that come and go did.
#[derive(Clone, Debug)]
pub(crate) struct Weighted {
    pub(crate) workers: usize,
    pub(crate) events: Vec<Event>,
    pub(crate) samples: Vec<Sample>,
}

/// A worker has come or gone.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) what: String,
    /// In seconds from the beginning.
    pub(crate) at: f64,
    pub(crate) since: Since,
    /// When the last partition got an owner, in seconds from the event.
    pub(crate) rested: f64,
    /// Until the next event, in seconds.
    pub(crate) observed: f64,
}

/// Has workers come one by one, and the first one leave.
///
/// # Errors
///
/// If the server or a worker fails.
pub(crate) async fn measure(server: &Server, times: Times) -> anyhow::Result<Weighted> {
    let mut partitions = Partitions::numbered(WEIGHTS.len());
    for (number, weight) in WEIGHTS.iter().enumerate() {
        partitions = partitions.weight(&number.to_string(), u32::try_from(*weight)?);
    }
    let ownership = Ownership::weighted(&WEIGHTS, WORKERS);
    let setting = Setting {
        connect_string: server.connect_string(),
        path: "/weighted".to_owned(),
        session_timeout: times.session_timeout,
        partitions,
        options: AssignmentOptions::new().max_moves(1),
        ownership: ownership.clone(),
    };
    let began = Instant::now();
    let (enough, sampling) = sample(ownership.clone(), began);
    let (mut workers, mut events) = (Vec::new(), Vec::new());
    for event in 0..=WORKERS {
        ownership.reset();
        let at = Instant::now();
        let what = match event < WORKERS {
            true => {
                workers.push(Worker::start(event, &setting, Arc::new(Barrier::new(1))));
                format!("worker {event} comes")
            }
            false => {
                workers.remove(0).end(End::Leaves).await?;
                "worker 0 leaves".to_owned()
            }
        };
        sleep(times.rest).await;
        let since = ownership.since_reset();
        events.push(Event {
            what,
            at: (at - began).as_secs_f64(),
            rested: since
                .last_grant
                .map_or(0.0, |last| (last - at).as_secs_f64()),
            observed: at.elapsed().as_secs_f64(),
            since,
        });
    }
    // An error means that the sampling has failed, and has an error to return.
    let _ = enough.send(());
    let samples = sampling.await?;
    for worker in workers {
        worker.end(End::Dies).await?;
    }
    Ok(Weighted {
        workers: WORKERS,
        events,
        samples,
    })
}
