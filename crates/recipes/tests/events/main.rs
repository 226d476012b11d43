//! The events and the metrics of one day of faults, compared with what happened.

mod blocked;
mod closing;
mod day;
mod failures;
#[cfg(feature = "assignment")]
mod moves;
#[cfg(feature = "metrics")]
mod recorder;

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use zookeeper_recipes::lock::LockOptions;
use zookeeper_recipes::{
    ConnectOptions, ExclusiveLock, LeaderElection, Recipe, RwLock, Semaphore, Session,
    SingleNodeLock, WaitStrategy,
};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::log::{Line, Log};

use self::day::{Day, bad_day};

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

/// What is expected of one event: its level, its name, and some of its fields.
type Expected = (Level, &'static str, Vec<(&'static str, String)>);

fn debug(name: &'static str, fields: Vec<(&'static str, String)>) -> Expected {
    (Level::DEBUG, name, fields)
}

fn info(name: &'static str, fields: Vec<(&'static str, String)>) -> Expected {
    (Level::INFO, name, fields)
}

fn warn(name: &'static str, fields: Vec<(&'static str, String)>) -> Expected {
    (Level::WARN, name, fields)
}

fn assert_logged(lines: &[Line], expected: &[Expected]) {
    let logged: Vec<(Level, &str)> = lines
        .iter()
        .map(|line| (line.level, line.message.as_str()))
        .collect();
    let names: Vec<(Level, &str)> = expected
        .iter()
        .map(|(level, name, _)| (*level, *name))
        .collect();
    assert_eq!(logged, names);
    for (line, (_, name, fields)) in lines.iter().zip(expected) {
        for (field, value) in fields {
            assert_eq!(
                line.fields.get(*field),
                Some(value),
                "{field} of {name}: {line:?}"
            );
        }
    }
}

fn token(number: i64) -> (&'static str, String) {
    ("token", number.to_string())
}

fn time(field: &'static str, time: Duration) -> (&'static str, String) {
    (field, format!("{time:?}"))
}

fn text(field: &'static str, text: &str) -> (&'static str, String) {
    (field, text.to_owned())
}

/// The events until the second hold is lost.
fn begun(day: &Day) -> Vec<Expected> {
    let (first, second) = (&day.first, &day.second);
    let one = || vec![text("session", &day.session)];
    vec![
        info("session opened", one()),
        info("session opened", vec![]),
        debug(
            "acquired",
            vec![token(first.token), time("waited", first.waited)],
        ),
        debug(
            "waiting",
            vec![text("behind", &first.node), text("position", "1")],
        ),
        debug("failed", vec![text("path", day::PATH)]),
        // The try that finds the lock taken logs nothing, and the refused one no place.
        debug("failed", vec![text("path", day::REFUSED)]),
        debug("failed", vec![text("path", day::REFUSED_BELOW)]),
        debug("suspended", vec![token(first.token)]),
        info("session suspended", one()),
        debug("resumed", vec![token(first.token)]),
        info("session resumed", one()),
        debug("suspended", vec![token(first.token)]),
        info("session suspended", one()),
        debug("resumed", vec![token(first.token)]),
        info("session resumed", one()),
        debug(
            "released",
            vec![token(first.token), time("held", first.held)],
        ),
        debug("acquired", vec![token(second.token)]),
        debug("waiting", vec![text("behind", &second.node)]),
        debug("given up", vec![]),
        warn(
            "lost",
            vec![token(second.token), text("reason", day::DELETED)],
        ),
    ]
}

/// The events from then on.
fn ended(day: &Day) -> Vec<Expected> {
    let (third, led) = (&day.third, &day.led);
    let one = || text("session", &day.session);
    vec![
        debug("acquired", vec![token(day.writer)]),
        debug("released", vec![token(day.writer)]),
        debug("acquired", vec![token(day.writer)]),
        debug("released", vec![token(day.writer)]),
        info(
            "leading",
            vec![token(led.token), time("waited", led.waited)],
        ),
        info("resigned", vec![token(led.token), time("held", led.held)]),
        debug("acquired", vec![token(third.token)]),
        debug("suspended", vec![token(third.token)]),
        info("session suspended", vec![one()]),
        warn(
            "lost",
            vec![token(third.token), text("reason", day::LAPSED)],
        ),
        info("session over", vec![one(), text("reason", "expired")]),
        info("session opened", vec![]),
        info("session over", vec![text("reason", "closed")]),
        info("session over", vec![text("reason", "closed")]),
    ]
}

#[tokio::test(start_paused = true)]
async fn events_of_a_bad_day_say_what_happened() {
    let (_alone, log, _listening) = listen().await;
    let day = bad_day().await;
    assert_logged(&log.lines(), &[begun(&day), ended(&day)].concat());
    let logged = log.lines();
    let in_span = |message: &str, span: &str| {
        let mut lines = logged.iter().filter(|line| line.message == message);
        assert!(
            lines.all(|line| line.spans.last().is_some_and(|last| *last == span)),
            "{message}"
        );
    };
    for message in ["waiting", "failed", "given up"] {
        in_span(message, "attempt");
    }
    for message in [
        "acquired",
        "suspended",
        "resumed",
        "released",
        "lost",
        "leading",
        "resigned",
    ] {
        in_span(message, "hold");
    }
    assert_eq!(log.open_spans(), 0, "each span is closed");
}

/// The spans of a hold are of level debug, so they are off.
#[tokio::test(start_paused = true)]
async fn lost_hold_is_named_at_level_info_and_was_held_until_its_loss() {
    let (_alone, log, _listening) = listen_up_to(Level::INFO).await;
    let simulation = Simulation::new(SimulationOptions::default());
    let process = simulation.process("one");
    let options = ConnectOptions::new().owner("billing");
    let session = Session::open(process.ensemble(), options).await;
    let session = session.expect("a session opens");
    let options = LockOptions::new().name("report");
    let lock = ExclusiveLock::with_options(&session, day::PATH, options).expect("a good path");
    let hold = lock.acquire().await.expect("free");
    let (held, asleep) = (hold.remaining(), hold.remaining() * 2);
    process.sleep(asleep);
    tokio::time::sleep(asleep * 2).await;
    let lines = log.lines();
    let lost: Vec<&Line> = lines.iter().filter(|line| line.message == "lost").collect();
    assert_eq!(lost.len(), 1, "{lines:?}");
    let node = hold.node_path().rsplit('/').next().expect("it has a name");
    let reason = hold.lost().await.to_string();
    let fields = [
        text("recipe", "lock"),
        text("name", "report"),
        text("path", day::PATH),
        text("znode", node),
        text("owner", session.owner()),
        token(hold.fencing_token().get()),
        time("held", held),
        text("reason", &reason),
    ];
    let fields = fields.map(|(field, value)| (field.to_owned(), value));
    assert_eq!(lost[0].fields, fields.into());
    assert_eq!(reason, day::LAPSED);
}

#[tokio::test(start_paused = true)]
async fn loss_is_reported_as_the_lease_ends_though_nobody_asks() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::new(SimulationOptions::default());
    let process = simulation.process("one");
    let session = Session::open(process.ensemble(), Default::default()).await;
    let lock = ExclusiveLock::new(&session.expect("it opens"), day::PATH).expect("a good path");
    let hold = lock.acquire().await.expect("free");
    process.partition(Duration::from_secs(3600));
    let ends = hold.remaining() + Duration::from_millis(1);
    tokio::time::sleep(ends).await;
    let lines = log.lines();
    let lost = lines.iter().find(|line| line.message == "lost");
    let reason = lost.and_then(|line| line.fields.get("reason"));
    assert_eq!(reason.map(String::as_str), Some(day::LAPSED), "{lines:?}");
    drop(hold);
}

#[tokio::test(start_paused = true)]
async fn task_that_acquires_what_it_holds_is_named_once() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::new(SimulationOptions::default());
    let timeout = SimulationOptions::default().session_timeout;
    let process = simulation.process("one");
    let session = Session::open(process.ensemble(), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let single = SingleNodeLock::new(&session, "/single").expect("a good path");
    let lock = ExclusiveLock::new(&session, "/lock").expect("a good path");
    let election = LeaderElection::new(&session, "/leader", "one").expect("a good path");
    let semaphore = Semaphore::new(&session, "/permits", 1).expect("a good path");
    let rwlock = RwLock::new(&session, "/rwlock").expect("a good path");
    let writer = rwlock.write();
    let recipes: [&dyn Recipe; 5] = [&lock, &single, &election, &semaphore, writer];
    for recipe in recipes {
        let hold = recipe.acquire().await.expect("nobody is before it");
        let before = own_waits(&log).len();
        let again = recipe
            .acquire_timeout(timeout - Duration::from_millis(1))
            .await;
        assert!(again.is_err_and(|error| error.is_timeout()));
        assert_eq!(own_waits(&log).len(), before, "too early: {recipe:?}");
        let again = recipe.acquire_timeout(3 * timeout).await;
        assert!(again.is_err_and(|error| error.is_timeout()));
        let warned = own_waits(&log);
        assert_eq!(warned.len(), before + 1, "{:?}", recipe.path());
        let holder = hold
            .node_path()
            .rsplit('/')
            .next()
            .expect("a name")
            .to_owned();
        let line = format!("{:?}", warned.last());
        assert!(
            line.contains(&holder) && line.contains("contender"),
            "{line}"
        );
        hold.release().await.expect("it is held");
    }
}

/// It has waited for a long time behind another process.
#[tokio::test(start_paused = true)]
async fn task_that_waits_behind_a_young_hold_of_its_process_is_not_named() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::new(SimulationOptions::default());
    let timeout = SimulationOptions::default().session_timeout;
    let lock = async |process| {
        let session = Session::open(simulation.ensemble(process), Default::default()).await;
        ExclusiveLock::new(&session.expect("it opens"), "/lock").expect("a good path")
    };
    let (ours, theirs) = (lock("ours").await, lock("theirs").await);
    let before = theirs.acquire().await.expect("free");
    let acquire = || {
        let lock = ours.clone();
        tokio::spawn(async move { lock.acquire().await })
    };
    let (first, second) = (acquire(), acquire());
    // It looks again a quarter of the timeout after the release.
    tokio::time::sleep(11 * timeout / 4).await;
    before.release().await.expect("it is held");
    let hold = first.await.expect("no panic").expect("its turn");
    tokio::time::sleep(timeout / 2).await;
    assert_eq!(own_waits(&log).len(), 0);
    tokio::time::sleep(3 * timeout).await;
    assert_eq!(own_waits(&log).len(), 1);
    hold.release().await.expect("it is held");
    let next = second.await.expect("no panic");
    next.expect("its turn").release().await.expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn waiter_that_looks_again_reports_each_place_once() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::new(SimulationOptions::default());
    let lock = async |process| {
        let session = Session::open(simulation.ensemble(process), Default::default()).await;
        let options = LockOptions::new().strategy(WaitStrategy::Poll(Duration::from_secs(1)));
        let lock = ExclusiveLock::with_options(&session.expect("it opens"), "/lock", options);
        lock.expect("a good path")
    };
    let holder = lock("holder").await.acquire().await.expect("free");
    let mut waiting = Vec::new();
    for process in ["second", "third"] {
        let lock = lock(process).await;
        waiting.push(tokio::spawn(async move { lock.acquire().await }));
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    holder.release().await.expect("it is held");
    let second = waiting.remove(0).await.expect("no panic");
    let second = second.expect("its turn");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let node = second
        .node_path()
        .rsplit('/')
        .next()
        .expect("a name")
        .to_owned();
    let lines = log.lines().into_iter();
    let positions: Vec<String> = lines
        .filter(|line| line.fields.get("behind") == Some(&node))
        .map(|line| line.fields["position"].clone())
        .collect();
    assert_eq!(positions, ["2", "1"]);
    second.release().await.expect("it is held");
    let third = waiting.remove(0).await.expect("no panic");
    third
        .expect("its turn")
        .release()
        .await
        .expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn candidate_that_steps_back_says_so() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::new(SimulationOptions::default());
    let election = async |id: &str| {
        let session = Session::open(simulation.ensemble(id), Default::default()).await;
        LeaderElection::new(&session.expect("it opens"), "/leader", id).expect("a good path")
    };
    let first = election("first").await.acquire().await.expect("free");
    let standby = election("standby").await.standby();
    let standby = tokio::spawn(async move { standby.acquire().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let regular = election("regular").await;
    let regular = tokio::spawn(async move { regular.acquire().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.release().await.expect("it leads");
    let regular = regular.await.expect("no panic").expect("its turn");
    let lines = log.lines().into_iter();
    let steps = lines.filter(|line| line.message == "stepped back");
    assert_eq!(steps.count(), 1, "{:?}", log.lines());
    regular.release().await.expect("it leads");
    let standby = standby.await.expect("no panic").expect("its turn");
    standby.release().await.expect("it leads");
}

fn own_waits(log: &Log) -> Vec<Line> {
    let lines = log.lines().into_iter();
    lines
        .filter(|line| line.message == "waits behind its own process")
        .collect()
}

#[tokio::test(start_paused = true)]
async fn pass_within_a_process_is_a_release_and_an_acquisition() {
    let (_alone, log, _listening) = listen().await;
    let simulation = Simulation::new(SimulationOptions::default());
    let session = Session::open(simulation.ensemble("one"), Default::default()).await;
    let options = zookeeper_recipes::lock::LockOptions::new().local(1);
    let lock = ExclusiveLock::with_options(&session.expect("it opens"), day::PATH, options);
    let lock = lock.expect("a good path");
    let hold = lock.acquire().await.expect("free");
    let other = lock.clone();
    let next = tokio::spawn(async move { other.acquire().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let token = token(hold.fencing_token().get());
    hold.release().await.expect("it is held");
    let next = next.await.expect("no panic").expect("its turn");
    drop(next);
    let lines = log.lines();
    let expected = ["acquired", "released", "acquired", "released"];
    let expected = expected.map(|name| debug(name, vec![token.clone()]));
    assert_logged(&lines[1..], &expected);
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn metrics_of_a_bad_day_count_what_happened() {
    let _alone = ALONE.lock().await;
    let recorder = recorder::Recorded::default();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let day = bad_day().await;
    zookeeper_recipes::common::describe_metrics();
    assert_eq!(recorder.undescribed(), [""; 0]);
    let of_lock = r#"{recipe="lock",name="report"}"#;
    let value =
        |metric: &str, labels: &str| recorder.value(&format!("zookeeper_recipes_{metric}{labels}"));
    // Three holds, one timeout, one try, one that was given up.
    assert_eq!(value("attempts_total", of_lock), 6.0);
    assert_eq!(value("acquired_total", of_lock), 3.0);
    assert_eq!(value("released_total", of_lock), 1.0);
    assert_eq!(value("waiting", of_lock), 0.0);
    assert_eq!(value("holding", of_lock), 0.0);
    for kind in ["deadline_elapsed", "taken", "given_up"] {
        let labels = format!(r#"{{recipe="lock",name="report",kind="{kind}"}}"#);
        assert_eq!(value("failed_total", &labels), 1.0, "{kind}");
    }
    assert_eq!(
        value("failed_total", r#"{recipe="lock",name="",kind="refused"}"#),
        2.0
    );
    for reason in ["deleted", "lease_elapsed"] {
        let labels = format!(r#"{{recipe="lock",name="report",reason="{reason}"}}"#);
        assert_eq!(value("lost_total", &labels), 1.0, "{reason}");
    }
    let waited = recorder.values(&format!("zookeeper_recipes_waited_seconds{of_lock}"));
    assert_eq!(waited.len(), 3);
    assert_eq!(waited[0], day.first.waited.as_secs_f64());
    let held = recorder.values(&format!("zookeeper_recipes_held_seconds{of_lock}"));
    assert_eq!(held.len(), 3);
    assert_eq!(held[0], day.first.held.as_secs_f64());
    for recipe in ["write_lock", "read_lock", "election"] {
        let labels = format!(r#"{{recipe="{recipe}",name=""}}"#);
        assert_eq!(value("acquired_total", &labels), 1.0, "{recipe}");
        assert_eq!(value("released_total", &labels), 1.0, "{recipe}");
        assert_eq!(value("holding", &labels), 0.0, "{recipe}");
    }
    assert_eq!(value("session_opened_total", ""), 3.0);
    assert_eq!(value("session_expiries_total", ""), 1.0);
    assert_eq!(value("session_reconnects_total", ""), 1.0);
    assert!(
        recorder
            .values("zookeeper_recipes_session_probe_seconds")
            .len()
            > 10
    );
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn handoff_is_measured_from_its_news_to_the_hold() {
    let _alone = ALONE.lock().await;
    let recorder = recorder::Recorded::default();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let simulation = Simulation::new(SimulationOptions::default());
    let campaign = async |id: &str| {
        let session = Session::open(simulation.ensemble(id), Default::default()).await;
        let session = session.expect("it opens");
        LeaderElection::new(&session, day::PATH, id).expect("a good path")
    };
    let first = campaign("first").await;
    let hold = first.acquire().await.expect("free");
    let mut waiting = Vec::new();
    for id in ["second", "third"] {
        let next = campaign(id).await;
        waiting.push(tokio::spawn(async move { next.acquire().await }));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let handoffs = || {
        let of_election = r#"{recipe="election",name=""}"#;
        recorder.values(&format!("zookeeper_recipes_handoff_seconds{of_election}"))
    };
    assert!(handoffs().is_empty(), "nothing was passed on");
    hold.release().await.expect("it is held");
    let mut took = Vec::new();
    for next in waiting {
        let hold = next.await.expect("no panic").expect("its turn");
        took.extend(handoffs().last().copied());
        hold.release().await.expect("it is held");
    }
    // The second holds at the news, and the third lists the queue before.
    assert_eq!(took.len(), 2, "{took:?}");
    assert!(took[0] == 0.0 && took[1] > 0.0 && took[1] < 1.0, "{took:?}");
}
