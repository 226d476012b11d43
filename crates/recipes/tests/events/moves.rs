//! The events and the metrics of a partition that moves between the workers of an assignment.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tracing::Level;
use zookeeper_recipes::{Assignment, AssignmentOptions, Partition, Partitions};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::log::{Line, Log};

use crate::{assert_logged, info, listen_up_to, text, time, warn};

const PATH: &str = "/app/queues";
const NAME: &str = "queues";

async fn worker(simulation: &Simulation, id: &str) -> Assignment {
    let session = simulation.session(id).await.expect("it opens");
    let options = AssignmentOptions::new().name(NAME).drain_without_limit();
    let partitions = Partitions::numbered(2);
    Assignment::with_options(&session, PATH, partitions, id, options).expect("good input")
}

/// The events of this name, without those of partitions that nobody owned.
fn named(log: &Log, message: &str) -> Vec<Line> {
    let lines = log.lines().into_iter();
    let unowned = |line: &Line| line.fields.get("reason").is_some_and(|it| it == "unowned");
    let named = lines.filter(|line| line.message == message && !unowned(line));
    named.collect()
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

    let moves = named(&log, "partition moves");
    let expected = vec![
        text("path", PATH),
        text("from", "one"),
        text("to", "two"),
        text("reason", "balance"),
    ];
    assert_logged(&moves, &[info("partition moves", expected)]);
    let partition = moves[0].fields["partition"].clone();
    let warned = |seconds| {
        let fields = vec![
            text("path", PATH),
            text("worker", "one"),
            text("partition", &partition),
            time("waited", Duration::from_secs(seconds)),
        ];
        warn("work does not end", fields)
    };
    assert_logged(&named(&log, "work does not end"), &[warned(6), warned(12)]);
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn moves_and_releases_are_counted_by_their_reasons() {
    let (_alone, log, _listening) = listen_up_to(Level::INFO).await;
    let recorder = crate::recorder::Recorded::default();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let values = |metric: &str, labels: &str| {
        let name = format!(r#"{{name="{NAME}"{labels}}}"#);
        recorder.values(&format!("zookeeper_recipes_assignment_{metric}{name}"))
    };
    move_one(&log, || {
        assert_eq!(values("moves_total", r#",reason="unowned""#), [2.0]);
        assert_eq!(values("moves_total", r#",reason="balance""#), [1.0]);
        // The partition that drains is owned until its release.
        assert_eq!(values("owned", ""), [2.0]);
        assert_eq!(values("deferred", ""), [0.0]);
        assert!(values("releases_total", r#",reason="given""#).is_empty());
    })
    .await;
    assert_eq!(values("releases_total", r#",reason="given""#), [1.0]);
    // Both workers are of this process, and own one each.
    assert_eq!(values("owned", ""), [1.0]);
}
