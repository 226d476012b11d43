//! Workers that hang: they stop no other move, and no partition is without an owner for long.

use tokio::task::yield_now;
use zookeeper_recipes_assignment::AssignmentStatus;
use zookeeper_recipes_simulation::block_this_task;

use crate::support::*;

const SECOND: Duration = Duration::from_secs(1);
/// How long a move may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A fleet of which two partitions move at once.
fn fleet(partitions: usize) -> Fleet {
    let mut fleet = Fleet::of(partitions);
    fleet.options = options();
    fleet
}

fn options() -> AssignmentOptions {
    AssignmentOptions::new().max_moves(2).move_within(LIMIT)
}

/// Options of a worker that takes no partition before it gets a permit for it.
fn hangs(permits: &Arc<Semaphore>) -> AssignmentOptions {
    let permits = permits.clone();
    let warm = move |_| {
        let permits = permits.clone();
        async move { permits.acquire().await.expect("open").forget() }
    };
    options().warm(warm)
}

fn aside(status: &AssignmentStatus) -> Vec<&str> {
    let workers = status.workers.iter().filter(|worker| worker.set_aside);
    workers.map(|worker| &*worker.id).collect()
}

/// The longest time in which so many partitions were not all owned.
async fn longest_gap(judge: Judge, partitions: usize) -> Duration {
    let (mut longest, mut since) = (Duration::ZERO, Instant::now());
    loop {
        if judge.owners().len() == partitions {
            since = Instant::now();
        }
        longest = longest.max(since.elapsed());
        if longest > LIMIT * 10 {
            return longest;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn worker_that_takes_none_is_set_aside_and_stops_no_drain_until_it_takes_one() {
    let mut fleet = fleet(12);
    let operator = fleet.operator().await;
    fleet.start_all(&["a", "b"]).await;
    let permits = Arc::new(Semaphore::new(0));
    fleet.options = hangs(&permits);
    let judge = fleet.judge.clone();
    let test = async {
        fleet.start("h").await;
        let mut status = operator.watch_status().await.expect("open");
        let began = Instant::now();
        let set_aside = status.wait_for(|status| aside(status) == ["h"]);
        drop(set_aside.await.expect("open"));
        assert!(began.elapsed() < LIMIT + SECOND, "{:?}", began.elapsed());

        operator.drain("b").await.expect("open");
        fleet.balanced(&["a"]).await;
        assert!(
            began.elapsed() < LIMIT + SECOND * 3,
            "{:?}",
            began.elapsed()
        );
        operator.undrain("b").await.expect("open");
        // The owner of the one partition that the worker may still take has it on top.
        let is_even = |judge: &Judge| judge.counts().values().all(|count| (5..=7).contains(count));
        fleet.until("balanced", is_even).await;
        sleep(LIMIT * 10).await;
        assert_eq!(aside(&operator.status().await.expect("read")), ["h"]);
        assert!(is_even(&fleet.judge), "{:?}", fleet.judge.counts());

        permits.add_permits(1_000);
        fleet.balanced(&["a", "b", "h"]).await;
        let back = status.wait_for(|status| aside(status).is_empty());
        drop(back.await.expect("open"));
    };
    tokio::select! {
        biased;
        gap = longest_gap(judge.clone(), 12) => panic!("{gap:?} without an owner"),
        () = test => {}
    }
    let most = judge.grants().into_values().max();
    assert!(most <= Some(8), "{:?}", judge.grants());
}

#[tokio::test(start_paused = true)]
async fn partition_without_an_owner_goes_elsewhere_if_its_next_owner_takes_none() {
    let mut fleet = fleet(6);
    fleet.start_all(&["a", "b"]).await;
    fleet.options = hangs(&Arc::new(Semaphore::new(0)));
    fleet.start("h").await;
    sleep(SECOND).await;
    fleet.kill("b");
    let began = Instant::now();
    fleet.balanced(&["a"]).await;
    // The session timeout, two ticks of the servers, a late move, and time for plans.
    let bound = SECOND * (6 + 2 * 2 + 1) + LIMIT;
    assert!(began.elapsed() < bound, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn worker_that_gives_none_is_set_aside_and_stops_no_drain_until_it_gives_one() {
    let mut fleet = fleet(12);
    let operator = fleet.operator().await;
    fleet.start_all(&["a"]).await;
    fleet.options = options().drain_at_most(Duration::MAX);
    let permits = Arc::new(Semaphore::new(0));
    let (judge, ends) = (fleet.judge.clone(), permits.clone());
    let stubborn = move |owned: Partition| {
        judge.granted("s", &owned);
        let ends = ends.clone();
        async move {
            owned.draining().await;
            ends.acquire().await.expect("open").forget();
        }
    };
    fleet.start_with("s", stubborn).await;
    fleet.balanced(&["a", "s"]).await;
    fleet.options = options();
    fleet.start("c").await;
    let mut status = operator.watch_status().await.expect("open");
    let set_aside = status.wait_for(|status| aside(status) == ["s"]);
    drop(set_aside.await.expect("open"));
    let began = Instant::now();
    operator.drain("a").await.expect("open");
    let counts = |s, c| BTreeMap::from([("s".to_owned(), s), ("c".to_owned(), c)]);
    fleet
        .until("drained", |judge| judge.counts() == counts(6, 6))
        .await;
    assert!(began.elapsed() < SECOND * 3, "{:?}", began.elapsed());
    // It gives what is asked of it, and what is asked next.
    permits.add_permits(1_000);
    let back = status.wait_for(|status| aside(status).is_empty());
    drop(back.await.expect("open"));
    operator.undrain("a").await.expect("open");
    fleet.balanced(&["a", "c", "s"]).await;
}

/// There is no partition to try it with until the one has an owner again.
#[tokio::test(start_paused = true)]
async fn worker_that_took_the_only_partition_not_is_tried_again_once_another_one_owns_it() {
    let mut fleet = fleet(1);
    let operator = fleet.operator().await;
    fleet.start_all(&["a"]).await;
    fleet.start("b").await;
    sleep(SECOND).await;
    let permits = Arc::new(Semaphore::new(0));
    fleet.options = hangs(&permits);
    fleet.start("h").await;
    sleep(SECOND).await;
    operator.pin("0", "h").await.expect("ordered");
    fleet.kill("a");
    let mut status = operator.watch_status().await.expect("open");
    let set_aside = status.wait_for(|status| aside(status) == ["h"]);
    drop(set_aside.await.expect("open"));
    let owned_by = |worker: &'static str| move |judge: &Judge| judge.counts().contains_key(worker);
    fleet.until("owned", owned_by("b")).await;
    permits.add_permits(1_000);
    fleet.until("owned by the pin", owned_by("h")).await;
}

/// Nothing can drop work that blocks its thread.
#[tokio::test(start_paused = true)]
async fn partition_that_is_lost_while_its_work_blocks_goes_to_another_worker() {
    for is_cut_off in [true, false] {
        let mut fleet = fleet(4);
        fleet.options = options().grace(LIMIT);
        fleet.start_all(&["a"]).await;
        let judge = fleet.judge.clone();
        let blocks = move |owned: Partition| {
            judge.granted("b", &owned);
            async move {
                block_this_task(LONG * 10);
                yield_now().await;
                owned.draining().await;
            }
        };
        fleet.start_with("b", blocks).await;
        fleet.balanced(&["a", "b"]).await;
        // Until its record shows them.
        sleep(SECOND).await;
        if is_cut_off {
            // It joins again within the grace.
            fleet.process("b").partition(LIMIT * 3 / 4);
        } else {
            let administrator = fleet.simulation.administrator();
            let of_locks = administrator.tree().into_iter();
            let contenders = of_locks.filter(|it| it.path.contains("/locks/") && it.data == b"b");
            for contender in contenders {
                administrator.delete(&contender.path).expect("it is there");
            }
        }
        fleet
            .until("lost", |judge| !judge.counts().contains_key("b"))
            .await;
        fleet
            .until("owned", |judge| judge.owners().len() == 4)
            .await;
    }
}
