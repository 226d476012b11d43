//! Many futures that run as one, in an order that does not depend on their wakers.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tokio::task::coop::has_budget_remaining;

/// Futures of which only those that were woken are polled, the oldest first.
///
/// One event wakes the futures that wait for it in any order, for example a reconnect. So a set that
/// polls in the order of the wakes runs differently under the same seed of a simulation.
pub(crate) struct OrderedFutures<F> {
    futures: BTreeMap<u64, (Pin<Box<F>>, Waker)>,
    next: u64,
    woken: Arc<Woken>,
    /// Those that are polled next.
    due: BTreeSet<u64>,
}

/// The futures that were woken since the last look.
#[derive(Default)]
struct Woken {
    numbers: Mutex<BTreeSet<u64>>,
    parent: AtomicWaker,
}

impl Woken {
    fn take(&self) -> BTreeSet<u64> {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut numbers)
    }

    fn add(&self, number: u64) {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.insert(number);
    }
}

/// The waker of one future.
struct One {
    number: u64,
    woken: Arc<Woken>,
}

impl Wake for One {
    fn wake(self: Arc<One>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<One>) {
        self.woken.add(self.number);
        self.woken.parent.wake();
    }
}

impl<F: Future> OrderedFutures<F> {
    pub(crate) fn new() -> OrderedFutures<F> {
        OrderedFutures {
            futures: BTreeMap::new(),
            next: 0,
            woken: Arc::default(),
            due: BTreeSet::new(),
        }
    }

    pub(crate) fn push(&mut self, future: F) {
        let number = self.next;
        self.next += 1;
        let woken = self.woken.clone();
        let waker = Waker::from(Arc::new(One { number, woken }));
        self.futures.insert(number, (Box::pin(future), waker));
        self.woken.add(number);
    }

    /// Runs the futures until one is done. `None` if there is none.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub(crate) async fn next(&mut self) -> Option<F::Output> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.futures.is_empty() {
            return Poll::Ready(None);
        }
        self.woken.parent.register(context.waker());
        if self.due.is_empty() {
            self.due = self.woken.take();
        }
        while let Some(number) = self.due.first().copied() {
            // Without it, each of the others would wake itself and make no progress.
            if !has_budget_remaining() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.due.remove(&number);
            // A waker may outlive its future.
            let Some((future, waker)) = self.futures.get_mut(&number) else {
                continue;
            };
            let polled = future.as_mut().poll(&mut Context::from_waker(waker));
            if let Poll::Ready(output) = polled {
                self.futures.remove(&number);
                return Poll::Ready(Some(output));
            }
        }
        // What these have woken meanwhile is polled next time, so that others have their turn.
        Poll::Pending
    }
}

#[cfg(test)]
#[path = "../tests/unit/ordered_futures.rs"]
mod tests;
