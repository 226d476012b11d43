//! The user's work: each partition has a task of its own, in the runtime of the caller.

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::runtime::Handle;
use zookeeper_recipes_core::ensemble::Ensemble;
use zookeeper_recipes_core::{Hold, LossReason};

use crate::partition::Partition;
use crate::task::Task;

type Begin = dyn Fn(Partition) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// Begins the user's work, and what the options run beside it.
#[derive(Clone)]
pub(crate) struct Works {
    runtime: Handle,
    ensemble: Arc<dyn Ensemble>,
    begin: Arc<Begin>,
}

/// How work has ended.
pub(crate) enum WorkEnd {
    /// It has returned.
    Returned(Result<(), String>),
    Lost(LossReason),
    /// It was stopped, or its runtime has shut down.
    Dropped,
}

/// Work on one partition. If the value is dropped, so is the work, and then its hold.
pub(crate) struct Job {
    /// The task has the hold, too. So the partition is released only after the work is dropped,
    /// though the work may block its thread.
    hold: Arc<Hold>,
    task: Task<WorkEnd>,
}

impl Works {
    /// Runs in the runtime that polls the caller.
    pub(crate) fn new<F, E>(
        ensemble: Arc<dyn Ensemble>,
        work: impl Fn(Partition) -> F + Send + Sync + 'static,
    ) -> Works
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let begin = move |partition| {
            let work = work(partition);
            async move { work.await.map_err(|error| error.to_string()) }.boxed()
        };
        Works {
            runtime: Handle::current(),
            ensemble,
            begin: Arc::new(begin),
        }
    }

    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        Task::spawn(&self.runtime, &*self.ensemble, work)
    }

    /// Begins the work on a partition, under its hold.
    pub(crate) fn begin(&self, hold: Hold, partition: Partition) -> Job {
        let hold = Arc::new(hold);
        let (begin, of_work) = (self.begin.clone(), hold.clone());
        let task = self.spawn(async move {
            let done = of_work.run_until_lost(begin(partition)).await;
            // Before the output, so that it is the last one then.
            drop(of_work);
            match done {
                Ok(result) => WorkEnd::Returned(result),
                Err(reason) => WorkEnd::Lost(reason),
            }
        });
        Job { hold, task }
    }
}

impl Job {
    /// Waits for the end of the work.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub(crate) async fn ended(&mut self) -> WorkEnd {
        self.task.output().await.unwrap_or(WorkEnd::Dropped)
    }

    /// Has the work dropped at its next `.await`.
    pub(crate) fn stop(&mut self) {
        self.task.stop();
    }

    /// Takes the hold of work that has [ended](Self::ended).
    pub(crate) fn into_hold(self) -> Option<Hold> {
        drop(self.task);
        Arc::into_inner(self.hold)
    }
}

impl fmt::Debug for Works {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Works").finish_non_exhaustive()
    }
}
