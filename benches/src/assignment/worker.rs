//! A worker with a session, a thread and a runtime of its own, as if it were a process.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Builder;
use tokio::sync::{Barrier, oneshot};
use zookeeper_recipes_assignment::{Assignment, AssignmentOptions, Partition, Partitions};
use zookeeper_recipes_core::{ConnectOptions, Session};

use crate::ownership::Ownership;

/// What all workers have in common.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) connect_string: String,
    pub(crate) path: String,
    pub(crate) session_timeout: Duration,
    pub(crate) partitions: Partitions,
    pub(crate) options: AssignmentOptions,
    pub(crate) ownership: Ownership,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It gives its partitions away, and closes its session.
    Leaves,
    /// It stops without a word, as if its process was killed. Its session expires later.
    Dies,
}

#[derive(Debug)]
pub(crate) struct Worker {
    end: oneshot::Sender<End>,
    ended: oneshot::Receiver<anyhow::Result<()>>,
}

impl Worker {
    /// Starts a worker. It opens its session, and begins once all wait at `ready`.
    pub(crate) fn start(number: usize, setting: &Setting, ready: Arc<Barrier>) -> Worker {
        let (end, order) = oneshot::channel();
        let (report, ended) = oneshot::channel();
        let setting = setting.clone();
        thread::spawn(move || {
            // If nobody waits for the end, the bench has failed already.
            let _ = report.send(run(number, &setting, &ready, order));
        });
        Worker { end, ended }
    }

    /// Ends the worker, and waits until its thread has ended.
    pub(crate) async fn end(self, how: End) -> anyhow::Result<()> {
        // If the worker has ended before, its result says why.
        let _ = self.end.send(how);
        self.ended.await.context("a worker has panicked")?
    }
}

fn run(
    number: usize,
    setting: &Setting,
    ready: &Barrier,
    order: oneshot::Receiver<End>,
) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // After a death nothing of the runtime runs any more: no farewell is sent.
    runtime.block_on(work(number, setting, ready, order))
}

async fn work(
    number: usize,
    setting: &Setting,
    ready: &Barrier,
    mut order: oneshot::Receiver<End>,
) -> anyhow::Result<()> {
    let options = ConnectOptions::new()
        .session_timeout(setting.session_timeout)
        .connection_timeout(Duration::from_secs(60));
    let session = Session::connect_with(&setting.connect_string, options).await?;
    let assignment = Assignment::with_options(
        &session,
        &setting.path,
        setting.partitions.clone(),
        format!("worker-{number}"),
        setting.options.clone(),
    )?;
    ready.wait().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        // An error means that the worker dies, and this future with it.
        let _ = stopped.await;
    };
    let ownership = setting.ownership.clone();
    let own = move |owned: Partition| {
        // The partitions are named by their numbers.
        let partition = owned.id().parse().unwrap_or(0);
        let owns = ownership.own(number, partition);
        async move {
            let _owns = owns;
            owned.draining().await;
            Ok::<(), Infallible>(())
        }
    };
    let mut run = Box::pin(assignment.run(shutdown, own));
    let end = tokio::select! {
        ended = &mut run => return Ok(ended?),
        end = &mut order => end.unwrap_or(End::Dies),
    };
    if end == End::Leaves {
        let _ = stop.send(());
        run.await?;
        session.close().await;
    }
    Ok(())
}
