//! The partitions of a worker: a task for each, by what the plan says.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use zookeeper_recipes_core::Error;

use crate::task::Task;
use crate::worker::{Directive, Prepared, Worker};

/// From this number of partitions on that a plan adds, they are prepared together.
const FEW: usize = 8;
/// The most partitions that are prepared together.
const MANY: usize = 128;

/// The partition of a task that has ended. `None` if the runtime has shut down.
type Ended = Option<Result<Arc<str>, Error>>;

/// The partitions of a worker. Dropped, all of them are released in the background.
pub(crate) struct Slots {
    worker: Arc<Worker>,
    tasks: FuturesUnordered<BoxFuture<'static, Ended>>,
    directives: BTreeMap<Arc<str>, watch::Sender<Directive>>,
}

impl Slots {
    pub(crate) fn new(worker: Arc<Worker>) -> Slots {
        Slots {
            worker,
            tasks: FuturesUnordered::new(),
            directives: BTreeMap::new(),
        }
    }

    /// Follows a new plan. A partition that is not in it is released.
    pub(crate) fn follow(&mut self, planned: BTreeMap<Arc<str>, Directive>) {
        for (id, directive) in &self.directives {
            let now = planned.get(id).copied();
            set(directive, now.unwrap_or(Directive::Leave));
        }
        let is_new = |it: &(Arc<str>, Directive)| {
            it.1 == Directive::Own && !self.directives.contains_key(&it.0)
        };
        let new: Vec<Arc<str>> = planned.into_iter().filter(is_new).map(|it| it.0).collect();
        for ids in new.chunks(MANY) {
            let prepared = match ids.len() >= FEW {
                true => self.worker.clone().prepare(ids.to_vec()).boxed(),
                false => ready(()).boxed(),
            };
            let prepared = prepared.shared();
            for id in ids {
                self.start(id.clone(), prepared.clone());
            }
        }
    }

    /// Gives all partitions the same directive, which is another one than to own.
    pub(crate) fn all(&mut self, directive: Directive) {
        for sender in self.directives.values() {
            set(sender, directive);
        }
    }

    fn start(&mut self, id: Arc<str>, prepared: Prepared) {
        let (sender, receiver) = watch::channel(Directive::Own);
        self.directives.insert(id.clone(), sender);
        let session = &self.worker.assignment.session;
        let kept = self.worker.clone().keep(id, receiver, prepared);
        let mut task = Task::spawn(session.runtime(), &**session.ensemble(), kept);
        self.tasks.push(async move { task.output().await }.boxed());
    }

    /// Runs until the error of one, or until no partition is left.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub(crate) async fn run_to_the_end(&mut self) -> Result<(), Error> {
        while let Some(ended) = self.tasks.next().await {
            let Some(id) = ended.transpose()? else {
                continue;
            };
            // A plan may have come since the task has looked at its directive.
            let directive = self.directives.remove(&id);
            if directive.is_some_and(|it| *it.borrow() == Directive::Own) {
                self.start(id, ready(()).boxed().shared());
            }
        }
        Ok(())
    }

    /// Runs until the error of one. See [`run_to_the_end`](Self::run_to_the_end).
    pub(crate) async fn run(&mut self) -> Error {
        match self.run_to_the_end().await {
            Err(error) => error,
            Ok(()) => pending().await,
        }
    }
}

fn set(sender: &watch::Sender<Directive>, directive: Directive) {
    sender.send_if_modified(|now| std::mem::replace(now, directive) != directive);
}

#[cfg(test)]
#[path = "../tests/unit/slots.rs"]
mod tests;
