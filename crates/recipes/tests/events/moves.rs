//! The events and the metrics of a partition that moves between the workers of an assignment.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;

use tokio::sync::watch;
use zookeeper_recipes::{Assignment, AssignmentOptions, Partition, Partitions};

use crate::*;

const PATH: &str = "/app/queues";
const NAME: &str = "queues";

async fn worker(simulation: &Simulation, id: &str) -> Assignment {
    let session = simulation.session(id).await.expect("it opens");
    let options = AssignmentOptions::new()
        .name(NAME)
        .drain_at_most(Duration::MAX);
    let partitions = Partitions::numbered(2);
    Assignment::with_options(&session, PATH, partitions, id, options).expect("good input")
}

async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Lets one of two partitions move, whose work ends more than two session timeouts after it should.
async fn move_one(log: &Log, mut during: impl FnMut()) {
    let simulation = Simulation::default();
    let (one, two) = (
        worker(&simulation, "one").await,
        worker(&simulation, "two").await,
    );
    let (end, ended) = watch::channel(false);
    let (begun, begins) = watch::channel(0);
    let stubborn = move |owned: Partition| {
        begun.send_modify(|begun| *begun += 1);
        let mut ended = ended.clone();
        async move {
            owned.draining().await;
            let _ = ended.wait_for(|ended| *ended).await;
            Ok::<(), Infallible>(())
        }
    };
    let (moves, moved) = watch::channel(false);
    let drains = move |owned: Partition| {
        moves.send_replace(true);
        async move {
            owned.draining().await;
            Ok::<(), Infallible>(())
        }
    };
    let script = async {
        until(|| *begins.borrow() == 2).await;
        let both = async {
            until(|| named(log, "work does not end").len() == 2).await;
            during();
            end.send_replace(true);
            until(|| *moved.borrow()).await;
        };
        tokio::select! {
            ended = two.run(pending(), drains) => ended.expect("open"),
            () = both => {}
        }
    };
    tokio::select! {
        ended = one.run(pending(), stubborn) => ended.expect("open"),
        () = pin!(script) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_drains_without_limit_is_warned_of_after_each_session_timeout() {
    let (_alone, log, _listening) = listen_up_to(Level::INFO).await;
    move_one(&log, || {}).await;

    let lines = log.lines();
    let shown = ["partition moves", "work does not end"];
    let is_unowned = |line: &Line| line.fields.get("reason").is_some_and(|it| it == "unowned");
    let lines = lines
        .iter()
        .filter(|line| shown.contains(&&*line.message) && !is_unowned(line));
    assert_snapshot!(shown::events(lines), @"
    INFO partition moves | from one | partition #0 | path /app/queues | reason balance | to two
    WARN work does not end | partition #0 | path /app/queues | waited 6s | worker one
    WARN work does not end | partition #0 | path /app/queues | waited 12s | worker one
    ");
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn moves_and_releases_are_counted_by_their_reasons() {
    let (_alone, log, _listening) = listen_up_to(Level::INFO).await;
    let recorder = metrics_util::debugging::DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let counted = || {
        let metrics = shown::metrics(&recorder);
        let lines = metrics.lines().filter(|it| it.starts_with("assignment_"));
        Vec::from_iter(lines).join("\n")
    };
    // The partition that drains is owned until its release.
    move_one(&log, || {
        assert_snapshot!(counted(), @r#"
    assignment_deferred name="queues": 0
    assignment_moves_total name="queues" reason="balance": 1
    assignment_moves_total name="queues" reason="unowned": 2
    assignment_owned name="queues": 2
    "#)
    })
    .await;
    // Both workers are of this process, and own one each.
    assert_snapshot!(counted(), @r#"
    assignment_deferred name="queues": 0
    assignment_moves_total name="queues" reason="balance": 0
    assignment_moves_total name="queues" reason="unowned": 0
    assignment_owned name="queues": 1
    assignment_releases_total name="queues" reason="given": 1
    "#);
}

/// The leader takes such a worker for one that takes no partition.
#[tokio::test(start_paused = true)]
async fn worker_that_may_not_publish_what_it_owns_is_warned_of() {
    let (_alone, log, _listening) = listen_up_to(Level::WARN).await;
    let simulation = Simulation::default();
    let administrator = simulation.administrator();
    let owned = format!("{PATH}/owned");
    for path in ["/app", PATH, &owned] {
        let created = administrator.create(path, b"", CreateMode::Persistent);
        created.expect("it is new");
    }
    let reads = [Acl::new(Permission::READ, AuthId::anyone())];
    administrator.set_acl(&owned, &reads).expect("it is there");
    let one = worker(&simulation, "one").await;
    let drains = |owned: Partition| async move {
        owned.draining().await;
        Ok::<(), Infallible>(())
    };
    let is_warned = until(|| !named(&log, "not published").is_empty());
    tokio::select! {
        ended = one.run(pending(), drains) => panic!("{ended:?}"),
        warned = timeout(Duration::from_secs(60), is_warned) => warned.expect("in time"),
    }
}
