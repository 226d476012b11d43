//! Restarts of the whole fleet, one worker after the other: how often partitions move.

use crate::support::*;

/// A fleet of twenty workers that is restarted. Returns the most owners that a partition had after
/// the first.
async fn restarted(options: AssignmentOptions, waits: bool) -> (usize, usize) {
    let mut fleet = Fleet::of(100);
    fleet.options = options;
    let names: Vec<String> = (0..20).map(|it| format!("w{it:02}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    fleet.start_all(&all).await;
    let (before, owners) = (fleet.judge.grants(), fleet.judge.owners());
    for worker in &all {
        fleet.end(worker).await;
        if waits {
            let others: Vec<&str> = all.iter().copied().filter(|it| it != worker).collect();
            fleet.balanced(&others).await;
        }
        fleet.start(worker).await;
        fleet.balanced(&all).await;
    }
    let after = fleet.judge.grants();
    let grants = after
        .iter()
        .map(|(partition, grants)| grants - before[partition]);
    let elsewhere = fleet.judge.owners();
    let elsewhere = elsewhere
        .iter()
        .filter(|(partition, worker)| owners[*partition] != **worker);
    (grants.max().unwrap_or_default(), elsewhere.count())
}

#[tokio::test(start_paused = true)]
async fn rolling_restart_moves_each_partition_away_and_back_at_most() {
    let (most, elsewhere) = restarted(AssignmentOptions::new(), true).await;
    assert_eq!(most, 2, "a partition had more than two owners");
    assert_eq!(elsewhere, 0, "they came back");
}

#[tokio::test(start_paused = true)]
async fn rolling_restart_within_the_grace_moves_nothing() {
    let options = AssignmentOptions::new().grace(Duration::from_secs(60));
    let (most, elsewhere) = restarted(options, false).await;
    // Each partition is owned again by the worker that had it.
    assert_eq!((most, elsewhere), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn worker_that_is_gone_for_longer_than_the_grace_loses_its_partitions() {
    let mut fleet = Fleet::of(6);
    fleet.options = AssignmentOptions::new().grace(Duration::from_secs(30));
    fleet.start_all(&["a", "b", "c"]).await;
    fleet.kill("c");
    let began = tokio::time::Instant::now();
    fleet.balanced(&["a", "b"]).await;
    let grace = Duration::from_secs(30);
    let bound = grace + Duration::from_secs(6 + 2 + 1);
    assert!(
        (grace..bound).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn endless_grace_keeps_the_partitions_of_a_worker_that_is_gone() {
    let mut fleet = Fleet::of(6);
    fleet.options = AssignmentOptions::new().grace(Duration::MAX);
    fleet.start_all(&["a", "b", "c"]).await;
    let before = fleet.judge.owners();
    fleet.end("c").await;
    tokio::time::sleep(LONG).await;
    assert_eq!(fleet.judge.owners().len(), 4);
    fleet.start("c").await;
    fleet.balanced(&["a", "b", "c"]).await;
    assert_eq!(fleet.judge.owners(), before);
}

#[tokio::test(start_paused = true)]
async fn each_absence_of_a_worker_has_a_grace_of_its_own() {
    let mut fleet = Fleet::of(6);
    let grace = Duration::from_secs(30);
    fleet.options = AssignmentOptions::new().grace(grace);
    fleet.start_all(&["a", "b", "c"]).await;
    let before = fleet.judge.owners();
    for _ in 0..3 {
        fleet.end("c").await;
        tokio::time::sleep(grace * 2 / 3).await;
        assert_eq!(fleet.judge.owners().len(), 4, "its partitions wait for it");
        fleet.start("c").await;
        fleet.balanced(&["a", "b", "c"]).await;
        assert_eq!(fleet.judge.owners(), before);
    }
}
