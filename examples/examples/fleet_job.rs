//! A job that one process of a fleet runs at a time, although the timers of all fire together.
//!
//! `cargo run --example fleet_job`; Ctrl-C stops the job, and releases its lock at once.

use std::error::Error;
use std::sync::Arc;

use tokio::signal::ctrl_c;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::{ExclusiveLock, Session};

type Failure = Box<dyn Error + Send + Sync>;

/// What became of the job in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    RunsElsewhere,
    Interrupted,
}

/// Runs the job, unless another process of the fleet runs it. If the lock is lost, the job is
/// stopped before another process can start it, and the error says why.
async fn run_once(
    session: &Session,
    job: impl Future<Output = ()>,
    mut shutdown: watch::Receiver<bool>,
) -> Result<Outcome, Failure> {
    let lock = ExclusiveLock::new(session, "/jobs/nightly")?;
    let Some(hold) = lock.try_acquire().await? else {
        return Ok(Outcome::RunsElsewhere);
    };
    let outcome = tokio::select! {
        done = hold.run_until_lost(job) => done.map(|()| Outcome::Done)?,
        _ = shutdown.wait_for(|shutdown| *shutdown) => Outcome::Interrupted,
    };
    // Without this, the lock stays taken for the session timeout when the process ends.
    hold.release().await?;
    Ok(outcome)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let playground = Playground::open().await?;
    let (stop, shutdown) = watch::channel(false);
    let interrupt = stop.clone();
    tokio::spawn(async move {
        if ctrl_c().await.is_ok() {
            interrupt.send_replace(true);
        }
    });

    // The job takes until the others have seen that it runs.
    let seen = Arc::new(Notify::new());
    let mut fleet = JoinSet::new();
    for name in ["node-1", "node-2", "node-3"] {
        let (session, shutdown) = (playground.connect().await?, shutdown.clone());
        let seen = seen.clone();
        fleet.spawn(async move {
            let outcome = run_once(&session, seen.notified(), shutdown).await?;
            println!("{name}: {outcome:?}");
            session.close().await;
            Ok::<_, Failure>(outcome)
        });
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = fleet.join_next().await {
        outcomes.push(outcome??);
        if outcomes.len() == 2 {
            seen.notify_one();
        }
    }
    if *shutdown.borrow() {
        return Ok(playground.close().await?);
    }
    use Outcome::{Done, RunsElsewhere};
    assert_eq!(outcomes, [RunsElsewhere, RunsElsewhere, Done]);

    // What Ctrl-C does to a job that would never end.
    let session = playground.connect().await?;
    let endless = run_once(&session, std::future::pending(), shutdown.clone());
    let (outcome, _) = tokio::join!(endless, async { stop.send_replace(true) });
    assert_eq!(outcome?, Outcome::Interrupted);
    let lock = ExclusiveLock::new(&session, "/jobs/nightly")?;
    assert!(lock.try_acquire().await?.is_some(), "free at once");
    println!("interrupted, and the lock is free at once");
    session.close().await;
    Ok(playground.close().await?)
}
