//! Many futures that run as one.

use std::cell::Cell;
use std::future::poll_fn;

use tokio::sync::watch;

use super::*;

#[tokio::test]
async fn futures_that_one_event_wakes_run_in_the_order_in_which_they_began() {
    for _ in 0..20 {
        let (sender, receiver) = watch::channel(0);
        let mut futures = OrderedFutures::new();
        for number in 0..50 {
            let mut receiver = receiver.clone();
            futures.push(async move {
                receiver.wait_for(|it| *it == 1).await.expect("open");
                number
            });
        }
        assert!(futures_util::poll!(std::pin::pin!(futures.next())).is_pending());
        sender.send_replace(1);
        for number in 0..50 {
            assert_eq!(futures.next().await, Some(number));
        }
        assert_eq!(futures.next().await, None);
    }
}

/// A future of tokio that has used up the task's budget wakes itself, and makes no progress.
#[tokio::test]
async fn event_that_wakes_many_futures_costs_a_few_polls_of_each() {
    const MANY: usize = 10_000;
    let (sender, receiver) = watch::channel(0);
    let polls = Cell::new(0);
    let mut futures = OrderedFutures::new();
    for _ in 0..MANY {
        let mut receiver = receiver.clone();
        let mut waits = Box::pin(async move {
            receiver.wait_for(|it| *it == 1).await.expect("open");
        });
        let polls = &polls;
        futures.push(poll_fn(move |context| {
            polls.set(polls.get() + 1);
            waits.as_mut().poll(context)
        }));
    }
    assert!(futures_util::poll!(std::pin::pin!(futures.next())).is_pending());
    sender.send_replace(1);
    while futures.next().await.is_some() {}
    assert!(polls.get() < 4 * MANY, "{} polls", polls.get());
}

#[tokio::test]
async fn future_that_wakes_itself_does_not_starve_the_others() {
    let mut futures = OrderedFutures::new();
    let yields = |times| async move {
        for _ in 0..times {
            tokio::task::yield_now().await;
        }
        times
    };
    futures.push(yields(1_000));
    futures.push(yields(3));
    assert_eq!(futures.next().await, Some(3));
    assert_eq!(futures.next().await, Some(1_000));
}
