//! The partitions of a worker: a future for each, by what the plan says.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, ready};
use tokio::sync::watch;
use zookeeper_recipes_core::Error;

use crate::ordered_futures::OrderedFutures;
use crate::worker::{Directive, Prepared};

/// From this number of partitions on that a plan adds, they are prepared together.
const FEW: usize = 8;
/// The most partitions that are prepared together.
const MANY: usize = 128;

/// The partitions of a worker. `prepare` makes a future for several new ones, `begin` that of one.
pub(crate) struct Slots<P, B, F> {
    prepare: P,
    begin: B,
    futures: OrderedFutures<F>,
    directives: BTreeMap<Arc<str>, watch::Sender<Directive>>,
}

impl<P, B, F> Slots<P, B, F>
where
    P: Fn(Vec<Arc<str>>) -> BoxFuture<'static, ()>,
    B: Fn(Arc<str>, watch::Receiver<Directive>, Prepared) -> F,
    F: Future<Output = Result<Arc<str>, Error>>,
{
    pub(crate) fn new(prepare: P, begin: B) -> Slots<P, B, F> {
        Slots {
            prepare,
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
        let is_new = |it: &(Arc<str>, Directive)| {
            it.1 == Directive::Own && !self.directives.contains_key(&it.0)
        };
        let new: Vec<Arc<str>> = planned.into_iter().filter(is_new).map(|it| it.0).collect();
        for ids in new.chunks(MANY) {
            let prepared = match ids.len() >= FEW {
                true => (self.prepare)(ids.to_vec()),
                false => ready(()).boxed(),
            };
            let prepared = prepared.shared();
            for id in ids {
                self.start(id.clone(), prepared.clone());
            }
        }
    }

    /// Gives all partitions the same directive, and begins no further one.
    pub(crate) fn all(&mut self, directive: Directive) {
        for sender in self.directives.values() {
            set(sender, directive);
        }
    }

    fn start(&mut self, id: Arc<str>, prepared: Prepared) {
        let (sender, receiver) = watch::channel(Directive::Own);
        self.directives.insert(id.clone(), sender);
        self.futures.push((self.begin)(id, receiver, prepared));
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
