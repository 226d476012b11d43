//! Never two at once, in the order of arrival, all get through, nothing is left.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use zookeeper_recipes_lock::{ExclusiveLock, Recipe, Session};

use crate::support::{
    CriticalSection, PATIENCE, Way, administrator, assert_nothing_left, children, create,
    eventually, server, session,
};

async fn contend(way: Way, contenders: usize, turns: usize) {
    let server = server().await;
    let section = Arc::new(CriticalSection::default());
    let mut tasks = JoinSet::new();
    for _ in 0..contenders {
        let session = session(&server).await;
        let lock = way.lock(&session, "/locks/contended");
        let section = section.clone();
        tasks.spawn(async move {
            for _ in 0..turns {
                let hold = lock.acquire().await.expect("the lock is acquired");
                section.attempt(&hold, Duration::from_millis(1)).await;
                hold.release().await.expect("the lock is released");
            }
            session.close().await;
        });
    }
    let all = async {
        while tasks
            .join_next()
            .await
            .transpose()
            .expect("no panic")
            .is_some()
        {}
    };
    tokio::time::timeout(PATIENCE, all)
        .await
        .expect("all get through");

    let tokens = section.tokens();
    assert_eq!(
        tokens.len(),
        contenders * turns,
        "{way:?}: each had its turns"
    );
    let ordered = tokens.is_sorted_by(|earlier, later| earlier < later);
    if way.keeps_order() {
        assert!(ordered, "{way:?}: first come, first served: {tokens:?}");
    }
    if let Way::SingleNode = way {
        assert!(
            ordered,
            "{way:?}: each holder has a newer token: {tokens:?}"
        );
    }
    assert_nothing_left(&server, "/locks/contended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_sessions_take_turns_in_each_of_the_four_ways() {
    for way in Way::ALL {
        contend(way, 20, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_take_turns() {
    contend(Way::Predecessor, 100, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_locks_of_one_session_exclude_each_other() {
    let server = server().await;
    let session = session(&server).await;
    let section = Arc::new(CriticalSection::default());
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        // Made anew each: these are contenders of their own, not clones.
        let lock = ExclusiveLock::new(&session, "/locks/one-session").expect("a good path");
        let section = section.clone();
        tasks.spawn(async move {
            let hold = lock.acquire().await.expect("the lock is acquired");
            section.attempt(&hold, Duration::from_millis(1)).await;
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
    assert_eq!(section.tokens().len(), 20);
    assert_nothing_left(&server, "/locks/one-session").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_children_are_ignored() {
    let server = server().await;
    let client = administrator(&server).await;
    let foreign = [
        "0",
        "config",
        "lock-",
        "lock-0000000000",
        "\u{2615}",
        "_c_-lock-0000000000",
    ];
    create(&client, "/locks").await;
    create(&client, "/locks/shared").await;
    for name in foreign {
        create(&client, &format!("/locks/shared/{name}")).await;
    }
    let (first, second) = (session(&server).await, session(&server).await);
    let first = ExclusiveLock::new(&first, "/locks/shared").expect("a good path");
    let second = ExclusiveLock::new(&second, "/locks/shared").expect("a good path");
    let hold = first.acquire().await.expect("nobody is before it");
    assert_eq!(
        second
            .contenders()
            .await
            .expect("the queue can be read")
            .len(),
        1
    );
    assert!(second.try_acquire().await.expect("an answer").is_none());
    hold.release().await.expect("the lock is released");
    assert!(second.try_acquire().await.expect("an answer").is_some());
    eventually("only the foreign children are left", || async {
        children(&client, "/locks/shared").await.len() == foreign.len()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_grow_over_the_directory_being_deleted() {
    let server = server().await;
    let client = administrator(&server).await;
    let session = session(&server).await;
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
async fn recipes_of_all_kinds_are_used_by_code_that_knows_only_the_trait() {
    async fn hold_all(recipes: &[Box<dyn Recipe>]) {
        let mut holds = Vec::new();
        for recipe in recipes {
            holds.push(recipe.acquire().await.expect("it is free"));
        }
        for (recipe, hold) in recipes.iter().zip(&holds) {
            assert!(hold.node_path().starts_with(recipe.path().as_str()));
            assert!(recipe.try_acquire().await.expect("an answer").is_none());
        }
    }
    let server = server().await;
    let session: Session = session(&server).await;
    let recipes: Vec<Box<dyn Recipe>> = Way::ALL
        .into_iter()
        .map(|way| way.lock(&session, &format!("/locks/{way:?}")))
        .collect();
    hold_all(&recipes).await;
    for recipe in &recipes {
        assert_nothing_left(&server, recipe.path().as_str()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_try_writes_nothing() {
    let server = server().await;
    let client = administrator(&server).await;
    let (holder, other) = (session(&server).await, session(&server).await);
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
