//! The user's work: each partition has a task of its own, in the runtime of the caller.

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::runtime::Handle;
use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::Ensemble;
use zookeeper_recipes_core::{Hold, LossReason};

use crate::partition::Partition;
use crate::task::Task;

type Begin = dyn Fn(Partition) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// Begins the user's work, and what the options run beside it.
pub(crate) struct Works {
    runtime: Handle,
    ensemble: Arc<dyn Ensemble>,
    begin: Arc<Begin>,
}

/// What the work returned, or why its hold is lost.
pub(crate) type WorkEnd = Result<Result<(), String>, LossReason>;

/// Work on one partition. If the value is dropped, so is the work, and then its hold.
pub(crate) struct Job {
    /// The task has the hold, too. So the partition is released only after the work is dropped,
    /// though the work may block its thread.
    pub(crate) hold: Arc<Hold>,
    pub(crate) task: Task<WorkEnd>,
    draining: watch::Sender<bool>,
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
    pub(crate) fn begin(&self, id: Arc<str>, hold: Hold) -> Job {
        let (draining, is_draining) = watch::channel(false);
        let partition = Partition {
            id,
            hold: hold.view(),
            draining: is_draining,
        };
        let hold = Arc::new(hold);
        let (begin, of_work) = (self.begin.clone(), hold.clone());
        let task = self.spawn(async move {
            let done = of_work.run_until_lost(begin(partition)).await;
            // Before the output, so that the hold of the job is the last one then.
            drop(of_work);
            done
        });
        Job {
            hold,
            task,
            draining,
        }
    }
}

impl Job {
    /// Asks the work to end.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Takes the hold of work that has ended.
    pub(crate) fn into_hold(self) -> Option<Hold> {
        drop(self.task);
        Arc::into_inner(self.hold)
    }
}
