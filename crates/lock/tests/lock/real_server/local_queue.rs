//! Clones of one lock in one process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{Judge, LOCK, PATIENCE, administrator, children, server, session};

use super::support::{SESSION_TIMEOUT, assert_nothing_left};

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_process_queue_behind_one_znode_in_the_order_of_their_calls() {
    const TASKS: usize = 20;
    let server = server().await;
    let client = administrator(&server).await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = ExclusiveLock::new(&session, "/locks/local").expect("a good path");
    let judge = Arc::new(Judge::of(LOCK));
    let (sender, mut order) = mpsc::unbounded_channel();
    let hold = lock.acquire().await.expect("nobody is before it");
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let (lock, judge, sender) = (lock.clone(), judge.clone(), sender.clone());
        let (polled, entered) = tokio::sync::oneshot::channel();
        tasks.spawn(async move {
            let mut acquire = std::pin::pin!(lock.acquire());
            // The place in the local queue is taken at the first poll.
            assert!(futures_util::poll!(&mut acquire).is_pending());
            polled.send(()).expect("the test waits");
            let hold = acquire.await.expect("the lock is acquired");
            sender.send(number).expect("the test listens");
            judge.turn(number, 1, &hold.view(), Duration::ZERO).await;
            hold.release().await.expect("the lock is released");
        });
        entered.await.expect("no panic");
    }
    assert_eq!(
        children(&client, "/locks/local").await.len(),
        1,
        "one znode for the process"
    );
    assert!(lock.try_acquire().await.expect("an answer").is_none());
    hold.release().await.expect("the lock is released");
    while tasks
        .join_next()
        .await
        .transpose()
        .expect("no panic")
        .is_some()
    {}
    let mut holders = Vec::new();
    while let Ok(number) = order.try_recv() {
        holders.push(number);
    }
    assert_eq!(
        holders,
        (0..TASKS).collect::<Vec<_>>(),
        "first in, first out"
    );
    assert_eq!(judge.grants(), TASKS, "each by the server");
    drop(tasks);
    assert_nothing_left(&server, "/locks/local").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn local_waiters_that_give_up_pass_the_turn_on() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = ExclusiveLock::new(&session, "/locks/local").expect("a good path");
    let hold = lock.acquire().await.expect("nobody is before it");
    let mut quitters = JoinSet::new();
    for _ in 0..1_000 {
        let lock = lock.clone();
        quitters.spawn(async move { lock.acquire().await });
    }
    let last = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await }
    });
    // Some of them go before their turn has come, some as it comes.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    drop(hold);
    quitters.shutdown().await;
    let hold = tokio::time::timeout(PATIENCE, last)
        .await
        .expect("in time")
        .expect("no panic");
    hold.expect("the lock is acquired")
        .release()
        .await
        .expect("the lock is released");
    assert_nothing_left(&server, "/locks/local").await;
}
