//! The warning of a runtime that did not run the tasks of a session.

use std::thread;

use tokio::time::Instant;
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};

use crate::*;

const WARNING: &str = "runtime blocked";
const TICK: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_secs(6);

fn server() -> EmbeddedServer {
    let options = EmbeddedOptions::default();
    let simulation = SimulationOptions {
        tick: TICK,
        ..options.simulation
    };
    let options = EmbeddedOptions {
        simulation,
        ..options
    };
    EmbeddedServer::start_with(options).expect("it starts")
}

/// Waits until the session's task has run, and has got an answer.
async fn probed(session: &Session) {
    let began = Instant::now();
    let is_later = |ago: Duration| ago < began.elapsed();
    while !session.health().last_answer.is_some_and(is_later) {
        sleep(Duration::from_millis(1)).await;
    }
}

async fn open(server: &EmbeddedServer) -> Session {
    let options = ConnectOptions::new().session_timeout(TIMEOUT).tick(TICK);
    let session = Session::connect_with(&server.connect_string(), options).await;
    session.expect("a session opens")
}

#[tokio::test(flavor = "current_thread")]
async fn runtime_that_was_blocked_is_warned_of_once_each_time() {
    let (_alone, log, _listening) = listen_up_to(Level::WARN).await;
    let server = server();
    let session = open(&server).await;
    let silence = session.tolerated_silence().expect("it is open");
    let warnings = || named(&log, WARNING);
    for times in 0..2 {
        probed(&session).await;
        thread::sleep(silence / 4);
        probed(&session).await;
        assert_eq!(warnings().len(), times, "a quarter costs no hold");
        thread::sleep(silence / 2 + TIMEOUT / 10);
        probed(&session).await;
        probed(&session).await;
        assert_eq!(warnings().len(), times + 1);
    }
    let fields = &warnings()[0].fields;
    let id = session.id().expect("it is open").to_string();
    assert_eq!(fields.get("session"), Some(&id));
    assert_eq!(
        fields.get("tolerated_silence"),
        Some(&format!("{silence:?}"))
    );
    session.close().await;
}

/// The hold is lost, so its release sends nothing. The close ends the session's task.
#[tokio::test(flavor = "current_thread")]
async fn block_right_before_the_release_and_the_close_is_warned_of_once() {
    let (_alone, log, _listening) = listen_up_to(Level::WARN).await;
    let server = server();
    for runs_before_the_close in [false, true] {
        let session = open(&server).await;
        let hold = one_lock(&session).acquire().await.expect("free");
        let before = named(&log, WARNING).len();
        thread::sleep(hold.remaining());
        if runs_before_the_close {
            hold.lost().await;
            sleep(TIMEOUT / 10).await;
        }
        hold.release().await.expect_err("the lease has lapsed");
        session.close().await;
        let warned = named(&log, WARNING).len() - before;
        assert_eq!(warned, 1, "runs before the close: {runs_before_the_close}");
    }
}

/// Nothing closes the session: its runtime is shut down.
#[test]
fn block_right_before_the_end_of_the_runtime_is_warned_of() {
    let _alone = ALONE.blocking_lock();
    let log = Log::up_to(Level::WARN);
    let _listening = tracing::subscriber::set_default(log.clone());
    let server = server();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    let _session = runtime.block_on(async {
        let session = open(&server).await;
        probed(&session).await;
        thread::sleep(session.tolerated_silence().expect("it is open"));
        session
    });
    assert_eq!(named(&log, WARNING).len(), 0);
    drop(runtime);
    assert_eq!(named(&log, WARNING).len(), 1);
}

/// An own close is no loss, but the lease had lapsed before.
#[tokio::test(flavor = "current_thread")]
async fn hold_whose_lease_lapsed_in_a_block_right_before_the_close_is_a_loss() {
    let (_alone, log, _listening) = listen_up_to(Level::WARN).await;
    let server = server();
    let options = ConnectOptions::new().session_timeout(8 * TICK).tick(TICK);
    let session = Session::connect_with(&server.connect_string(), options).await;
    let session = session.expect("a session opens");
    let hold = one_lock(&session).acquire().await.expect("free");
    thread::sleep(hold.remaining());
    session.close().await;
    let lost = named(&log, "lost");
    assert_eq!(lost[0].fields["reason"], crate::day::LAPSED);
}
