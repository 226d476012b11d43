//! The partitions of a worker: a future for each, by what the plan says.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use zookeeper_recipes_core::Error;

use crate::ordered_futures::OrderedFutures;
use crate::worker::Directive;

/// The partitions of a worker. `begin` makes the future of one.
pub(crate) struct Slots<B, F> {
    begin: B,
    futures: OrderedFutures<F>,
    directives: BTreeMap<Arc<str>, watch::Sender<Directive>>,
}

impl<B, F> Slots<B, F>
where
    B: Fn(Arc<str>, watch::Receiver<Directive>) -> F,
    F: Future<Output = Result<Arc<str>, Error>>,
{
    pub(crate) fn new(begin: B) -> Slots<B, F> {
        Slots {
            begin,
            futures: OrderedFutures::new(),
            directives: BTreeMap::new(),
        }
    }

    /// Follows a new plan. A partition that is not in it is released.
    pub(crate) fn follow(&mut self, planned: BTreeMap<Arc<str>, Directive>) {
        for (id, directive) in &self.directives {
            set(
                directive,
                planned.get(id).copied().unwrap_or(Directive::Leave),
            );
        }
        for (id, directive) in planned {
            if directive == Directive::Own && !self.directives.contains_key(&id) {
                self.start(id);
            }
        }
    }

    /// Gives all partitions the same directive, and begins no further one.
    pub(crate) fn all(&mut self, directive: Directive) {
        for sender in self.directives.values() {
            set(sender, directive);
        }
    }

    fn start(&mut self, id: Arc<str>) {
        let (sender, receiver) = watch::channel(Directive::Own);
        self.directives.insert(id.clone(), sender);
        self.futures.push((self.begin)(id, receiver));
    }

    /// Runs the futures. Returns once none is left; see [`run`](Self::run).
    pub(crate) async fn run_to_the_end(&mut self) -> Result<(), Error> {
        while let Some(ended) = self.futures.next().await {
            self.ended(&ended?);
        }
        Ok(())
    }

    /// Runs the futures until the error of one.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub(crate) async fn run(&mut self) -> Error {
        loop {
            match self.futures.next().await {
                Some(Ok(id)) => self.ended(&id),
                Some(Err(error)) => return error,
                None => std::future::pending().await,
            }
        }
    }

    /// A future has ended: its directive was another one than to own.
    ///
    /// No plan can have come since, because the future ends in the poll that looks at the directive.
    fn ended(&mut self, id: &str) {
        self.directives.remove(id);
    }
}

fn set(sender: &watch::Sender<Directive>, directive: Directive) {
    sender.send_if_modified(|now| {
        let is_new = *now != directive;
        *now = directive;
        is_new
    });
}
