//! Moves: warmed, drained, a few at a time; and what operators order.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::*;

const SECOND: Duration = Duration::from_secs(1);

/// The number of partitions that a worker should give away, by the plans at the server.
fn gives(fleet: &Fleet) -> usize {
    let tree = fleet.simulation.administrator().tree();
    let plans = tree
        .iter()
        .filter(|node| node.path.starts_with("/app/queues/plan/"));
    let gives = |data: &[u8]| String::from_utf8_lossy(data).matches("\ngive ").count();
    plans.map(|node| gives(&node.data)).sum()
}

#[tokio::test(start_paused = true)]
async fn owner_works_until_the_next_one_has_warmed_and_the_handoff_leaves_no_gap() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a"]).await;
    let warmed = Arc::new(Semaphore::new(0));
    let warming = warmed.clone();
    fleet.options = AssignmentOptions::new().warm(move |_| {
        let warming = warming.clone();
        async move { warming.acquire().await.expect("open").forget() }
    });
    fleet.start("b").await;
    fleet.until("to be given", |_| gives(&fleet) == 2).await;
    sleep(SECOND * 20).await;
    assert_eq!(fleet.judge.counts(), BTreeMap::from([("a".to_owned(), 4)]));

    warmed.add_permits(2);
    let mut gap = Duration::ZERO;
    let mut free: Option<Instant> = None;
    while fleet.judge.counts().get("b") != Some(&2) {
        match (fleet.judge.owners().len() < 4, free) {
            (true, None) => free = Some(Instant::now()),
            (true, Some(since)) => gap = gap.max(since.elapsed()),
            (false, _) => free = None,
        }
        sleep(Duration::from_millis(1)).await;
    }
    // A deletion, and a notification.
    assert!(gap <= Duration::from_millis(20), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn znode_of_another_program_is_not_taken_for_the_next_owner() {
    let mut fleet = Fleet::of(2);
    fleet.start_all(&["a"]).await;
    let administrator = fleet.simulation.administrator();
    let locks = format!("{PATH}/locks");
    for lock in administrator.children(&locks) {
        let path = format!("{locks}/{lock}/notes");
        let created = administrator.create(&path, b"", CreateMode::Persistent);
        created.expect("there is none");
    }
    fleet.options = AssignmentOptions::new().warm(|_| pending());
    fleet.start("b").await;
    fleet.until("to be given", |_| gives(&fleet) == 1).await;
    sleep(SECOND * 25).await;
    assert_eq!(fleet.judge.counts()["a"], 2);
}

/// Starts a worker whose work ignores that it should drain. Returns how many works were dropped.
async fn start_stubborn(fleet: &mut Fleet, worker: &'static str) -> Arc<AtomicUsize> {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (judge, dropped) = (fleet.judge.clone(), Arc::new(AtomicUsize::new(0)));
    let count = dropped.clone();
    let work = move |owned: Partition| {
        judge.granted(worker, &owned);
        let guard = Dropped(count.clone());
        async move {
            let _guard = guard;
            pending().await
        }
    };
    fleet.start_with(worker, work).await;
    dropped
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_dropped_after_the_limit_and_the_others_continue() {
    let mut fleet = Fleet::of(2);
    fleet.options = AssignmentOptions::new().drain_at_most(SECOND * 7);
    let dropped = start_stubborn(&mut fleet, "a").await;
    fleet.balanced(&["a"]).await;
    let began = Instant::now();
    fleet.start("b").await;
    fleet.balanced(&["a", "b"]).await;
    assert!((SECOND * 7..SECOND * 8).contains(&began.elapsed()));
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn work_without_a_limit_keeps_its_partition_until_it_ends() {
    let mut fleet = Fleet::of(2);
    fleet.options = AssignmentOptions::new().drain_at_most(Duration::MAX);
    let dropped = start_stubborn(&mut fleet, "a").await;
    fleet.balanced(&["a"]).await;
    fleet.start("b").await;
    fleet.until("to be given", |_| gives(&fleet) == 1).await;
    sleep(SECOND * 600).await;
    assert_eq!(fleet.judge.counts()["a"], 2);
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn waiters_for_many_partitions_do_not_bar_one_another_from_the_queues() {
    let mut fleet = Fleet::of(160);
    fleet.options = AssignmentOptions::new().drain_at_most(Duration::MAX);
    start_stubborn(&mut fleet, "a").await;
    fleet.balanced(&["a"]).await;
    let administrator = fleet.simulation.administrator();
    let published = || {
        let tree = administrator.tree().into_iter();
        let owned = tree.filter(|node| node.path.contains("/owned/"));
        let lines = |data: Vec<u8>| data.iter().filter(|it| **it == b'@').count();
        owned.map(|node| lines(node.data)).sum::<usize>()
    };
    fleet.until("published", |_| published() == 160).await;
    fleet.shut_down("a");
    // A worker is planned with all partitions at once that nobody seems to own.
    for node in administrator.tree() {
        if node.path.contains("/owned/") {
            administrator.delete(&node.path).expect("it is there");
        }
    }
    fleet.start("b").await;
    // More than the locks that a worker enters at once, and none of them is released.
    let waiters = || {
        let tree = fleet.simulation.administrator().tree();
        let contender = |path: &str| path.contains("/locks/") && path.contains("-lock-");
        let contenders = tree.iter().filter(|node| contender(&node.path));
        contenders.count() - 160
    };
    fleet.until("in the queues", |_| waiters() == 160).await;
}

#[tokio::test(start_paused = true)]
async fn no_more_partitions_move_at_once_than_may() {
    let mut fleet = Fleet::of(24);
    fleet.options = AssignmentOptions::new().max_moves(3);
    let judge = fleet.judge.clone();
    let slow = move |owned: Partition| {
        judge.granted("a", &owned);
        async move {
            owned.draining().await;
            sleep(SECOND).await;
        }
    };
    fleet.start_with("a", slow).await;
    fleet.balanced(&["a"]).await;
    fleet.start("b").await;
    let mut most = 0;
    while fleet.judge.counts().get("b") != Some(&12) {
        most = most.max(gives(&fleet));
        assert!(most <= 3, "{most} partitions move at once");
        assert!(24 - fleet.judge.owners().len() <= 3);
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(most, 3);
}

/// Partitions of these weights, of which one moves at a time.
fn weighted(weights: &[u32]) -> Fleet {
    let mut fleet = Fleet::of(weights.len());
    fleet.options = AssignmentOptions::new().max_moves(1);
    for (number, weight) in weights.iter().enumerate() {
        let number = number.to_string();
        fleet.partitions = fleet.partitions.clone().weight(&number, *weight);
    }
    fleet
}

#[tokio::test(start_paused = true)]
async fn weighted_partitions_come_to_rest_one_move_at_a_time() {
    let mut fleet = weighted(&[1, 2, 2, 5, 7, 2]);
    for worker in ["a", "b", "c", "d"] {
        fleet.start(worker).await;
        sleep(SECOND * 3).await;
    }
    sleep(SECOND * 10).await;
    let (before, owners) = (fleet.judge.grants(), fleet.judge.owners());
    sleep(SECOND * 60).await;
    assert_eq!(fleet.judge.grants(), before, "moves go on: {owners:?}");
    assert_eq!(owners.len(), 6);
    // An owner for each worker that came, after the first.
    assert!(before.values().all(|grants| *grants <= 4), "{before:?}");
    assert_eq!(fleet.judge.counts().len(), 4, "a worker owns nothing");
}

#[tokio::test(start_paused = true)]
async fn drained_worker_gives_all_it_has_and_gets_its_share_again_after_that() {
    let mut fleet = Fleet::of(6);
    let operator = fleet.operator().await;
    fleet.start_all(&["a", "b", "c"]).await;
    operator.drain("b").await.expect("open");
    fleet.balanced(&["a", "c"]).await;
    let status = operator.status().await.expect("read");
    let drained = status.workers.iter().filter(|worker| worker.drained);
    assert!(drained.map(|worker| &worker.id).eq(["b"]));
    operator.undrain("b").await.expect("open");
    fleet.balanced(&["a", "b", "c"]).await;
}

#[tokio::test(start_paused = true)]
async fn pinned_partition_goes_to_its_worker_and_stays_there() {
    let mut fleet = Fleet::of(6);
    let operator = fleet.operator().await;
    fleet.start_all(&["a", "b", "c"]).await;
    for worker in ["a", "b", "c", "a"] {
        operator.pin("4", worker).await.expect("open");
        let moved = |judge: &Judge| judge.owners().get("4").is_some_and(|it| it == worker);
        fleet.until("moved", moved).await;
        fleet.balanced(&["a", "b", "c"]).await;
        assert_eq!(fleet.judge.owners()["4"], worker);
    }
    fleet.kill("a");
    fleet.balanced(&["b", "c"]).await;
    let status = operator.status().await.expect("read");
    assert_eq!(status.partitions[4].pinned.as_deref(), Some("a"));
    assert_ne!(status.partitions[4].planned.as_deref(), Some("a"));
    operator.unpin("4").await.expect("open");
    let status = operator.status().await.expect("read");
    assert_eq!(status.partitions[4].pinned, None);
}

#[tokio::test(start_paused = true)]
async fn frozen_plan_moves_only_the_partitions_of_workers_that_are_gone() {
    let mut fleet = Fleet::of(6);
    let operator = fleet.operator().await;
    fleet.start_all(&["a", "b"]).await;
    let before = fleet.judge.grants();
    operator.freeze().await.expect("open");
    // The leader has seen it once a later order has its effect.
    sleep(SECOND).await;
    fleet.start("c").await;
    sleep(SECOND * 30).await;
    assert_eq!(fleet.judge.grants(), before, "nothing has moved");
    fleet.kill("b");
    let owned = |judge: &Judge| judge.owners().len() == 6;
    fleet.until("owned again", owned).await;
    assert_eq!(fleet.judge.counts()["a"], 3, "{:?}", fleet.judge.counts());
    operator.thaw().await.expect("open");
    fleet.balanced(&["a", "c"]).await;
}

#[tokio::test(start_paused = true)]
async fn partitions_come_and_go_and_the_others_stay() {
    let mut fleet = Fleet::of(6);
    fleet.partitions = Partitions::named(["north", "south", "east", "west"]);
    let operator = fleet.operator().await;
    fleet.start_all(&["a", "b"]).await;
    let before = fleet.judge.owners();
    // One is split in two, and one is removed.
    fleet.partitions = Partitions::named(["north-1", "north-2", "south", "east"]);
    let split = operator.set_partitions(fleet.partitions.clone()).await;
    split.expect("open");
    let names = ["east", "north-1", "north-2", "south"];
    let split = |judge: &Judge| judge.owners().keys().eq(names);
    fleet.until("split", split).await;
    fleet.balanced(&["a", "b"]).await;
    let grants = fleet.judge.grants();
    let stayed = ["south", "east"]
        .iter()
        .filter(|it| fleet.judge.owners()[**it] == before[**it]);
    assert!(stayed.count() >= 1, "{grants:?}");
    assert!(grants["south"] + grants["east"] <= 3, "{grants:?}");
}

#[tokio::test(start_paused = true)]
async fn weights_capacities_and_zones_count() {
    let mut fleet = Fleet::of(6);
    let operator = fleet.operator().await;
    fleet.partitions = Partitions::named(["big", "s1", "s2", "s3", "s4"]).weight("big", 4);
    fleet.options = AssignmentOptions::new().zone("eu");
    fleet.start("a").await;
    fleet.options = AssignmentOptions::new().zone("us");
    fleet.start("b").await;
    let are = |judge: &Judge, expected: [usize; 2]| {
        let counts: Vec<usize> = judge.counts().into_values().collect();
        counts == expected || counts == [expected[1], expected[0]]
    };
    fleet.until("by weight", |judge| are(judge, [4, 1])).await;

    let zones = Partitions::named(["x", "y", "z"])
        .zone("x", "eu")
        .zone("y", "us")
        .zone("z", "asia");
    operator.set_partitions(zones).await.expect("open");
    let is = |judge: &Judge, partition: &str, worker: &str| {
        judge.owners().get(partition).is_some_and(|it| it == worker)
    };
    let by_zone = |judge: &Judge| is(judge, "x", "a") && is(judge, "y", "b");
    fleet.until("by zone", by_zone).await;
    // No worker is in the third zone.
    let owned = |judge: &Judge| judge.owners().len() == 3;
    fleet.until("all owned", owned).await;

    fleet.end("b").await;
    let six = operator.set_partitions(Partitions::numbered(6)).await;
    six.expect("open");
    fleet.options = AssignmentOptions::new().capacity(2);
    fleet.start("c").await;
    let by_capacity = |judge: &Judge| judge.counts().get("c") == Some(&4);
    fleet.until("by capacity", by_capacity).await;
}

#[tokio::test(start_paused = true)]
async fn status_shows_who_owns_what_and_what_moves() {
    let mut fleet = Fleet::of(4);
    let operator = fleet.operator().await;
    let status = operator.status().await.expect("read");
    assert!(status.partitions.is_empty() && status.workers.is_empty() && !status.frozen);
    fleet.start_all(&["a"]).await;
    let mut routing = operator.routing().await.expect("open");
    let all = timeout(LONG, routing.wait_for(|routing| routing.len() == 4)).await;
    drop(all.expect("in time").expect("open"));
    let status = operator.status().await.expect("read");
    assert!(!status.partitions.iter().any(|partition| partition.moves()));
    assert_eq!((status.workers[0].owned, status.workers[0].planned), (4, 4));
    assert_eq!(status.workers[0].address, "a:8080");
    fleet.options = AssignmentOptions::new().warm(|_| pending());
    fleet.start("b").await;
    fleet.until("to be given", |_| gives(&fleet) == 2).await;
    let status = operator.status().await.expect("read");
    let moves = status
        .partitions
        .iter()
        .filter(|partition| partition.moves());
    assert_eq!(moves.count(), 2);
    assert_eq!((status.workers[1].owned, status.workers[1].planned), (0, 2));
}
