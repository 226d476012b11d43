//! What the lists of contenders say, for each recipe: who holds by the recipe's own rule.

use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes::{
    ConnectOptions, ExclusiveLock, LeaderElection, QueueEntry, Recipe, RwLock, Semaphore, Session,
};
use zookeeper_recipes_simulation::Simulation;

async fn session(simulation: &Simulation) -> Session {
    let options = ConnectOptions::new().owner("billing");
    let opened = Session::open(simulation.ensemble("billing"), options).await;
    opened.expect("a session opens")
}

fn holds(entries: &[QueueEntry]) -> Vec<bool> {
    entries.iter().map(|entry| entry.holds).collect()
}

/// Until a task that was spawned waits in the queue.
async fn settle() {
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_a_read_write_lock_holds_by_its_own_rule_whoever_asks() {
    let simulation = Simulation::default();
    let session = session(&simulation).await;
    let lock = RwLock::new(&session, "/rw").expect("a good path");
    let reads = [
        lock.read().acquire().await.expect("no writer"),
        lock.read().acquire().await.expect("no writer"),
    ];
    let (write, read) = (lock.write().clone(), lock.read().clone());
    let writer = tokio::spawn(async move { write.acquire().await });
    settle().await;
    let reader = tokio::spawn(async move { read.acquire().await });
    settle().await;
    for listed in [
        lock.contenders().await,
        lock.read().contenders().await,
        lock.write().contenders().await,
    ] {
        let listed = listed.expect("it can be read");
        assert_eq!(holds(&listed), [true, true, false, false]);
        let owners = listed.iter().map(|entry| entry.owner.as_deref());
        assert!(
            owners
                .into_iter()
                .all(|owner| owner == Some(session.owner()))
        );
    }
    for read in reads {
        read.release().await.expect("it is held");
    }
    let writing = writer.await.expect("no panic").expect("its turn");
    let listed = lock.read().contenders().await.expect("it can be read");
    assert_eq!(holds(&listed), [true, false]);

    // A downgraded hold keeps its owner.
    let reading = writing.downgrade().await.expect("it is held");
    let last = reader.await.expect("no panic").expect("its turn");
    let listed = lock.write().contenders().await.expect("it can be read");
    assert_eq!(holds(&listed), [true, true]);
    assert_eq!(listed[0].owner.as_deref(), Some(session.owner()));
    drop((reading, last));
}

#[tokio::test(start_paused = true)]
async fn permits_are_held_by_the_recorded_number_whoever_asks() {
    let simulation = Simulation::default();
    let session = session(&simulation).await;
    let semaphore = Semaphore::new(&session, "/s", 5).expect("a good path");
    let first = semaphore.acquire_many(4).await.expect("free");
    let wanting = semaphore.clone();
    let heavy = tokio::spawn(async move { wanting.acquire_many(3).await });
    settle().await;
    let wanting = semaphore.clone();
    let light = tokio::spawn(async move { wanting.acquire().await });
    settle().await;
    // One that was made with another number still learns who holds. The last contender wants the free
    // permit, and waits behind one that wants three.
    let mistaken = Semaphore::new(&session, "/s", 99).expect("a good path");
    for asked in [&semaphore, &mistaken] {
        let listed = asked.contenders().await.expect("it can be read");
        assert_eq!(holds(&listed), [true, false, false]);
    }
    semaphore.resize(8).await.expect("it is allowed");
    let heavy = heavy.await.expect("no panic").expect("there is room");
    let light = light.await.expect("no panic").expect("there is room");
    let mistaken = Semaphore::new(&session, "/s", 99).expect("a good path");
    let listed = mistaken.contenders().await.expect("it can be read");
    assert_eq!(holds(&listed), [true; 3]);
    drop((first, heavy, light));
}

#[tokio::test(start_paused = true)]
async fn lock_says_who_it_is_and_a_candidate_its_id() {
    let simulation = Simulation::default();
    let session = session(&simulation).await;
    let lock = ExclusiveLock::new(&session, "/lock").expect("a good path");
    let _held = lock.acquire().await.expect("free");
    let listed = lock.contenders().await.expect("it can be read");
    assert_eq!(listed[0].owner.as_deref(), Some(session.owner()));

    let election = LeaderElection::new(&session, "/leader", "node-7").expect("a good path");
    let _leads = election.acquire().await.expect("nobody leads");
    let waiting = tokio::spawn(async move {
        let other = LeaderElection::new(&session, "/leader", "node-8");
        other.expect("a good path").acquire().await.map(drop)
    });
    settle().await;
    let listed = election.contenders().await.expect("it can be read");
    let ids: Vec<_> = listed.iter().map(|entry| entry.owner.as_deref()).collect();
    assert_eq!(ids, [Some("node-7"), Some("node-8")]);
    assert_eq!(holds(&listed), [true, false]);
    waiting.abort();
}
