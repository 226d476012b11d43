//! The events and the metrics of faults, losses and waits.

mod blocked;
mod closing;
mod day;
mod failures;
#[cfg(feature = "assignment")]
mod moves;
mod shown;
mod waits;

pub(crate) use std::time::Duration;

pub(crate) use insta::assert_snapshot;
use tokio::sync::{Mutex, MutexGuard};
pub(crate) use tokio::time::{sleep, timeout};
pub(crate) use tracing::Level;
use tracing::subscriber::DefaultGuard;
pub(crate) use zookeeper_recipes::common::CreateMode;
pub(crate) use zookeeper_recipes::lock::LockOptions;
pub(crate) use zookeeper_recipes::{
    Acl, AuthId, ConnectOptions, Error, ExclusiveLock, Hold, LeaderElection, LossReason,
    Permission, RwLock, Session, SessionEnd, SingleNodeLock,
};
pub(crate) use zookeeper_recipes_simulation::{SimulatedProcess, Simulation};
pub(crate) use zookeeper_recipes_suite::log::{Line, Log};

use self::day::bad_day;

/// Lets one test run at a time.
///
/// `tracing` asks once whether anybody wants an event, for all threads. A test that listens to
/// nothing would answer for one that begins to listen at that moment.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Keeps all events of this thread, while no other test does so.
async fn listen() -> (MutexGuard<'static, ()>, Log, DefaultGuard) {
    listen_up_to(Level::TRACE).await
}

/// As [`listen`], for events of this level and of those above it.
async fn listen_up_to(most: Level) -> (MutexGuard<'static, ()>, Log, DefaultGuard) {
    let alone = ALONE.lock().await;
    let log = Log::up_to(most);
    (alone, log.clone(), tracing::subscriber::set_default(log))
}

/// The events of this name.
fn named(log: &Log, name: &str) -> Vec<Line> {
    let lines = log.lines().into_iter();
    lines.filter(|line| line.message == name).collect()
}

fn one_lock(session: &Session) -> ExclusiveLock {
    ExclusiveLock::new(session, "/lock").expect("a good path")
}

#[tokio::test(start_paused = true)]
async fn events_of_a_bad_day_say_what_happened() {
    let (_alone, log, _listening) = listen().await;
    bad_day().await;
    assert_snapshot!(shown::events(&log.lines()), @"
    INFO session opened | session #0 | timeout 30s
    INFO session opened | session #1 | timeout 30s
    DEBUG hold: acquired | path /locks/report | token #2 | waited 0s
    DEBUG attempt: waiting | behind #3 | path /locks/report | position 1
    DEBUG attempt: failed | error /locks/report: not acquired within 2s | path /locks/report
    DEBUG attempt: failed | error /guarded: no permission: the znode's access control list does not grant `create` to this session (session 0x100000000000002) | path /guarded
    DEBUG attempt: failed | error /guarded: no permission: the znode's access control list does not grant `create` to this session (session 0x100000000000002) | path /guarded/below/it
    INFO session suspended | session #0
    INFO session resumed | session #0
    INFO session suspended | session #0
    INFO session resumed | session #0
    DEBUG hold: released | held 41s | path /locks/report | token #2
    DEBUG hold: acquired | path /locks/report | token #4 | waited 0s
    DEBUG attempt: waiting | behind #5 | path /locks/report | position 1
    DEBUG attempt: given up | path /locks/report
    WARN hold: lost | held 11s | name report | owner service | path /locks/report | reason the hold is lost: its znode was deleted | recipe lock | token #4 | znode #5
    DEBUG hold: acquired | path /rw | token #6 | waited 0s
    DEBUG hold: released | held 0s | path /rw | token #6
    DEBUG hold: acquired | path /rw | token #6 | waited 0s
    DEBUG hold: released | held 0s | path /rw | token #6
    INFO hold: leading | path /leader | token #7 | waited 0s
    INFO hold: resigned | held 5s | path /leader | token #7
    DEBUG hold: acquired | path /locks/report | token #8 | waited 0s
    INFO session suspended | session #0
    WARN hold: lost | held 24s | name report | owner service | path /locks/report | reason the hold is lost: no answer came in time to show that its session is alive | recipe lock | token #8 | znode #9
    INFO session over | reason expired | session #0
    INFO session opened | session #10 | timeout 30s
    INFO session over | reason closed | session #10
    INFO session over | reason closed | session #1
    ");
    assert_eq!(log.open_spans(), 0, "each span is closed");
}

/// The spans of a hold are of level debug, so they are off.
#[tokio::test(start_paused = true)]
async fn lost_hold_is_named_at_level_info_and_was_held_until_its_loss() {
    let (_alone, log, _listening) = listen_up_to(Level::INFO).await;
    let process = Simulation::default().process("one");
    let options = ConnectOptions::new().owner("billing");
    let session = Session::open(process.ensemble(), options).await;
    let options = LockOptions::new().name("report");
    let lock = ExclusiveLock::with_options(&session.expect("it opens"), "/lock", options);
    let hold = lock.expect("a good path").acquire().await.expect("free");
    let left = hold.remaining();
    process.sleep(left * 2);
    tokio::time::sleep(left * 4).await;
    let lost = named(&log, "lost");
    assert_snapshot!(shown::events(&lost), @"WARN lost | held 2s | name report | owner billing | path /lock | reason the hold is lost: no answer came in time to show that its session is alive | recipe lock | token #0 | znode #1");
    let fields = &lost[0].fields;
    assert_eq!(fields["held"], format!("{left:?}"));
    assert_eq!(fields["token"], hold.fencing_token().to_string());
    assert!(hold.node_path().ends_with(&fields["znode"]));
}

#[tokio::test(start_paused = true)]
async fn loss_is_reported_as_the_lease_ends_though_nobody_asks() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::default();
    let session = simulation.session("one").await.expect("it opens");
    let hold = one_lock(&session).acquire().await.expect("free");
    simulation
        .process("one")
        .partition(Duration::from_secs(3600));
    tokio::time::sleep(hold.remaining() + Duration::from_millis(1)).await;
    let lost = named(&log, "lost");
    assert_eq!(lost[0].fields["reason"], day::LAPSED);
    drop(hold);
}

#[tokio::test(start_paused = true)]
async fn turns_of_two_tasks_are_two_holds() {
    let (_alone, log, _listening) = listen().await;
    let session = Simulation::default().session("one").await;
    let lock = ExclusiveLock::new(&session.expect("it opens"), "/lock");
    let lock = lock.expect("a good path");
    let hold = lock.acquire().await.expect("free");
    let next = tokio::spawn(async move { lock.acquire().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    hold.release().await.expect("it is held");
    drop(next.await.expect("no panic").expect("its turn"));
    assert_snapshot!(shown::events(&log.lines()), @"
    INFO session opened | session #0 | timeout 6s
    DEBUG hold: acquired | path /lock | token #1 | waited 0s
    DEBUG hold: released | held 1s | path /lock | token #1
    DEBUG hold: acquired | path /lock | token #2 | waited 1s
    DEBUG hold: released | held 0s | path /lock | token #2
    ");
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn metrics_of_a_bad_day_count_what_happened() {
    let _alone = ALONE.lock().await;
    let recorder = metrics_util::debugging::DebuggingRecorder::new();
    let _recording = metrics::set_default_local_recorder(&recorder);
    bad_day().await;
    let metrics = shown::metrics(&recorder);
    let (probes, others): (Vec<&str>, Vec<&str>) =
        metrics.lines().partition(|it| it.contains("probe_seconds"));
    assert_eq!(probes.len(), 1);
    assert!(probes[0].matches("0.0").count() > 10, "{probes:?}");
    assert_snapshot!(others.join("\n"), @r#"
    acquired_total recipe="election" name="": 1
    acquired_total recipe="lock" name="report": 3
    acquired_total recipe="read_lock" name="": 1
    acquired_total recipe="write_lock" name="": 1
    attempts_total recipe="election" name="": 1
    attempts_total recipe="lock" name="": 2
    attempts_total recipe="lock" name="report": 6
    attempts_total recipe="write_lock" name="": 1
    failed_total recipe="lock" name="" kind="refused": 2
    failed_total recipe="lock" name="report" kind="deadline_elapsed": 1
    failed_total recipe="lock" name="report" kind="given_up": 1
    failed_total recipe="lock" name="report" kind="taken": 1
    held_seconds recipe="election" name="": [5.0]
    held_seconds recipe="lock" name="report": [41.0, 11.0, 24.0]
    held_seconds recipe="read_lock" name="": [0.0]
    held_seconds recipe="write_lock" name="": [0.0]
    holding recipe="election" name="": 0
    holding recipe="lock" name="report": 0
    holding recipe="read_lock" name="": 0
    holding recipe="write_lock" name="": 0
    lost_total recipe="lock" name="report" reason="deleted": 1
    lost_total recipe="lock" name="report" reason="lease_elapsed": 1
    released_total recipe="election" name="": 1
    released_total recipe="lock" name="report": 1
    released_total recipe="read_lock" name="": 1
    released_total recipe="write_lock" name="": 1
    session_expiries_total: 1
    session_opened_total: 3
    session_reconnects_total: 1
    waited_seconds recipe="election" name="": [0.0]
    waited_seconds recipe="lock" name="report": [0.0, 0.0, 0.0]
    waited_seconds recipe="read_lock" name="": [0.0]
    waited_seconds recipe="write_lock" name="": [0.0]
    waiting recipe="election" name="": 0
    waiting recipe="lock" name="": 0
    waiting recipe="lock" name="report": 0
    waiting recipe="write_lock" name="": 0
    "#);
}
