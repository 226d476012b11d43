//! Never two at once, in the order of arrival, all get through, nothing is left.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{Judge, LOCK, administrator, in_time, server, session};

use crate::support::{SESSION_TIMEOUT, assert_nothing_left};

const BRIEFLY: Duration = Duration::from_millis(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_take_turns() {
    const CONTENDERS: usize = 100;
    const TURNS: usize = 2;
    let server = server().await;
    let judge = Arc::new(Judge::of(LOCK));
    let mut tasks = JoinSet::new();
    for number in 0..CONTENDERS {
        let session = session(&server, SESSION_TIMEOUT).await;
        let lock = ExclusiveLock::new(&session, "/locks/contended").expect("a good path");
        let judge = judge.clone();
        tasks.spawn(async move {
            for _ in 0..TURNS {
                let hold = lock.acquire().await.expect("the lock is acquired");
                judge.turn(number, 1, &hold, BRIEFLY).await;
                hold.release().await.expect("the lock is released");
            }
            session.close().await;
        });
    }
    in_time("all get through", tasks.join_all()).await;
    assert_eq!(judge.grants(), CONTENDERS * TURNS, "each had its turns");
    assert_nothing_left(&server, "/locks/contended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_locks_of_one_session_exclude_each_other() {
    let server = server().await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let judge = Arc::new(Judge::of(LOCK));
    let mut tasks = JoinSet::new();
    for number in 0..20 {
        // Made anew each: these are contenders of their own, not clones.
        let lock = ExclusiveLock::new(&session, "/locks/one-session").expect("a good path");
        let judge = judge.clone();
        tasks.spawn(async move {
            let hold = lock.acquire().await.expect("the lock is acquired");
            judge.turn(number, 1, &hold, BRIEFLY).await;
            hold.release().await.expect("the lock is released");
        });
    }
    while tasks
        .join_next()
        .await
        .transpose()
        .expect("no panic")
        .is_some()
    {}
    assert_eq!(judge.grants(), 20);
    assert_nothing_left(&server, "/locks/one-session").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_grow_over_the_directory_being_deleted() {
    let server = server().await;
    let client = administrator(&server).await;
    let session = session(&server, SESSION_TIMEOUT).await;
    let lock = ExclusiveLock::new(&session, "/locks/reaped").expect("a good path");
    let mut last = 0;
    for _ in 0..5 {
        let hold = lock.acquire().await.expect("the lock is acquired");
        assert!(hold.fencing_token().get() > last);
        assert!(
            hold.node_path().ends_with("-lock-0000000000"),
            "the number begins anew"
        );
        last = hold.fencing_token().get();
        hold.release().await.expect("the lock is released");
        client
            .delete("/locks/reaped", None)
            .await
            .expect("the directory is empty");
        client
            .delete("/locks", None)
            .await
            .expect("the directory is empty");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_try_writes_nothing() {
    let server = server().await;
    let client = administrator(&server).await;
    let (holder, other) = (
        session(&server, SESSION_TIMEOUT).await,
        session(&server, SESSION_TIMEOUT).await,
    );
    let holder = ExclusiveLock::new(&holder, "/locks/tried").expect("a good path");
    let other = ExclusiveLock::new(&other, "/locks/tried").expect("a good path");
    let hold = holder.acquire().await.expect("nobody is before it");
    let before = client
        .check_stat("/locks/tried")
        .await
        .expect("an answer")
        .expect("it is there");
    assert!(other.try_acquire().await.expect("an answer").is_none());
    let after = client
        .check_stat("/locks/tried")
        .await
        .expect("an answer")
        .expect("it is there");
    assert_eq!(before, after, "no child has come or gone");
    drop(hold);
}
