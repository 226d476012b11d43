//! The threads of a process that want the same lock.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{self, JoinHandle};
use tokio::sync::Semaphore;
use tokio::time::tick;
use zookeeper_recipes_core::{Ended, Error, Hold, LossReason, Queue};
use zookeeper_recipes_shuttle::queue::{DIRECTORY, queue};
use zookeeper_recipes_shuttle::{Server, check};

/// Who holds now.
#[derive(Clone, Default)]
struct Holders(Arc<AtomicUsize>);

impl Holders {
    /// Acquires, holds for a while, and gives the hold to `then`.
    fn hold(&self, queue: &Queue, then: impl FnOnce(Hold)) {
        let hold = block_on(queue.acquire()).expect("a hold");
        assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "two holders");
        thread::yield_now();
        assert!(hold.is_held());
        self.0.fetch_sub(1, Ordering::SeqCst);
        then(hold);
    }
}

fn release(hold: Hold) {
    block_on(hold.release()).expect("released");
}

/// Polls an acquisition some times, and drops it. A hold that it gets is dropped, too.
fn give_up(queue: &Queue) {
    let mut acquiring = pin!(queue.acquire());
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..thread_rng().gen_range(0..4) {
        if let Poll::Ready(hold) = acquiring.as_mut().poll(&mut context) {
            drop(hold.expect("a hold"));
            return;
        }
        thread::yield_now();
    }
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads.into_iter().collect::<Vec<_>>() {
        thread.join().expect("no panic");
    }
}

/// Waits until no contender is left. Schedules that do not come to that run out of steps.
fn until_empty(server: &Server) {
    while !server.children(DIRECTORY).is_empty() {
        thread::yield_now();
    }
}

#[test]
fn one_thread_at_a_time_holds() {
    check(400, || {
        let (server, _session, queue) = queue();
        let holders = Holders::default();
        join((0..3).map(|_| {
            let (queue, holders) = (queue.clone(), holders.clone());
            thread::spawn(move || (0..2).for_each(|_| holders.hold(&queue, release)))
        }));
        assert!(server.children(DIRECTORY).is_empty());
    });
}

#[test]
fn place_of_a_thread_that_gives_up_goes_to_the_next() {
    check(400, || {
        let (server, _session, queue) = queue();
        let holders = Holders::default();
        let waits = |_| {
            let (queue, holders) = (queue.clone(), holders.clone());
            thread::spawn(move || holders.hold(&queue, release))
        };
        let waiters: Vec<_> = (0..2).map(waits).collect();
        let quits = |_| {
            let queue = queue.clone();
            thread::spawn(move || give_up(&queue))
        };
        let quitters: Vec<_> = (0..2).map(quits).collect();
        join(waiters.into_iter().chain(quitters));
        until_empty(&server);
    });
}

#[test]
fn hold_that_is_dropped_on_another_thread_goes_to_the_next() {
    check(400, || {
        let (server, _session, queue) = queue();
        let holders = Holders::default();
        join((0..3).map(|_| {
            let (queue, holders) = (queue.clone(), holders.clone());
            thread::spawn(move || {
                holders.hold(&queue, |hold| drop(thread::spawn(move || drop(hold))));
            })
        }));
        until_empty(&server);
    });
}

#[test]
fn each_thread_that_awaits_the_end_of_a_hold_sees_it() {
    check(400, || {
        let (_server, _session, queue) = queue();
        let hold = block_on(queue.acquire()).expect("a hold");
        let watchers: Vec<_> = (0..2)
            .map(|_| {
                let view = hold.view();
                thread::spawn(move || assert_eq!(block_on(view.ended()), Ended::Released))
            })
            .collect();
        release(hold);
        join(watchers);
    });
}

/// Waits for the lock. The first to hold loses it to an operator, and keeps it until the other
/// holds.
fn lose_or_hold(queue: &Queue, server: &Server, others: &Semaphore) {
    let hold = block_on(queue.acquire()).expect("a hold");
    if others.available_permits() > 0 {
        return release(hold);
    }
    others.add_permits(1);
    assert!(server.delete(hold.node_path()));
    // The loss watch of a hold is set at the next tick of its session.
    tick();
    let ended = block_on(hold.view().ended());
    assert_eq!(ended, Ended::Lost(LossReason::Deleted));
    block_on(others.acquire_many(2))
        .expect("not closed")
        .forget();
}

#[test]
fn waiter_holds_when_an_operator_deletes_the_znode_of_the_holder_before_it() {
    check(1_000, || {
        let (server, _session, queue) = queue();
        let first = block_on(queue.acquire()).expect("a hold");
        let others = Arc::new(Semaphore::new(0));
        let waits = |_| {
            let (queue, server, others) = (queue.clone(), server.clone(), others.clone());
            thread::spawn(move || {
                lose_or_hold(&queue, &server, &others);
                others.add_permits(1);
            })
        };
        let waiters: Vec<_> = (0..2).map(waits).collect();
        release(first);
        join(waiters);
        until_empty(&server);
    });
}

#[test]
fn threads_that_wait_learn_that_the_session_is_closed() {
    check(400, || {
        let (server, session, queue) = queue();
        let waits = |_| {
            let queue = queue.clone();
            thread::spawn(move || match block_on(queue.acquire()) {
                Ok(hold) => drop(hold),
                Err(Error::SessionOver { .. } | Error::NoSession { .. }) => {}
                Err(other) => panic!("{other}"),
            })
        };
        let waiters: Vec<_> = (0..3).map(waits).collect();
        block_on(session.close());
        join(waiters);
        until_empty(&server);
    });
}
