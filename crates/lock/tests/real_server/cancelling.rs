//! Acquisitions that are dropped half-way.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use zookeeper_recipes_lock::ExclusiveLock;

use crate::support::{
    PATIENCE, Way, assert_nothing_left, eventually, queue_length, server, session,
};

/// Polls a future so many times and drops it then; `None` where it was not finished by then.
async fn polled<T>(work: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut work = pin!(work);
    let mut polls = 0;
    std::future::poll_fn(|context| {
        polls += 1;
        match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polls == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_dropped_at_each_of_its_awaits_leaves_nothing() {
    let server = server().await;
    let session = session(&server).await;
    for way in Way::ALL {
        let mut polls = 1;
        loop {
            // A directory of its own each time, so that its creation is cut short as well.
            let path = format!("/cancelled/{way:?}-{polls}/lock");
            let lock = way.lock(&session, &path);
            let acquired = polled(lock.acquire(), polls).await;
            let finished = acquired.is_some();
            drop(acquired);
            eventually("nobody is left in the queue", || async {
                lock.contenders()
                    .await
                    .expect("the queue can be read")
                    .is_empty()
            })
            .await;
            let again = lock
                .acquire_timeout(PATIENCE)
                .await
                .expect("the next acquire works");
            again.release().await.expect("the lock is released");
            assert_nothing_left(&server, &path).await;
            if finished {
                break;
            }
            polls += 1;
        }
        assert!(polls > 2, "{way:?}: it was dropped at {polls} awaits");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_dropped_at_each_of_its_awaits_leaves_nothing() {
    let server = server().await;
    let (first, second) = (session(&server).await, session(&server).await);
    for way in Way::ALL {
        let path = format!("/cancelled/{way:?}");
        let holder = way.lock(&first, &path);
        let lock = way.lock(&second, &path);
        let hold = holder.acquire().await.expect("nobody is before it");
        for polls in 1..=6 {
            let waiting = polled(lock.acquire(), polls);
            // With all its requests answered, a waiter is not polled any more.
            let _ = tokio::time::timeout(Duration::from_millis(300), waiting).await;
            queue_length(&*holder, 1).await;
        }
        let tried = polled(lock.try_acquire(), 1).await;
        assert!(tried.is_none(), "it has to ask the server");
        assert!(hold.is_held());
        hold.release().await.expect("the lock is released");
        let again = lock
            .acquire_timeout(PATIENCE)
            .await
            .expect("the next acquire works");
        again.release().await.expect("the lock is released");
        assert_nothing_left(&server, &path).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_bounds_the_wait_for_a_silent_server() {
    let server = server().await;
    let session = session(&server).await;
    let lock = ExclusiveLock::new(&session, "/locks/silent").expect("a good path");
    server.pause().expect("it can be paused");
    let started = std::time::Instant::now();
    let result = lock.acquire_timeout(Duration::from_millis(500)).await;
    let waited = started.elapsed();
    assert!(matches!(
        result,
        Err(zookeeper_recipes_lock::Error::DeadlineElapsed { .. })
    ));
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    server.resume().expect("it goes on");
    let hold = lock
        .acquire_timeout(PATIENCE)
        .await
        .expect("it works again");
    hold.release().await.expect("the lock is released");
    assert_nothing_left(&server, "/locks/silent").await;
}
