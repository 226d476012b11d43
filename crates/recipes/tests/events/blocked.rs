//! The warning of a runtime that did not run the tasks of a session.

use std::thread;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::Level;
use zookeeper_recipes::{ConnectOptions, Session};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};

use crate::ALONE;
use crate::log::{Line, Log};

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

#[tokio::test(flavor = "current_thread")]
async fn runtime_that_was_blocked_is_warned_of_once_each_time() {
    let _alone = ALONE.lock().await;
    let log = Log::up_to(Level::WARN);
    let _listening = tracing::subscriber::set_default(log.clone());
    let server = server();
    let options = ConnectOptions::new().session_timeout(TIMEOUT).tick(TICK);
    let session = Session::connect_with(&server.connect_string(), options).await;
    let session = session.expect("a session opens");
    let tolerates = session.tolerates().expect("it is open");
    let warnings = || -> Vec<Line> {
        let lines = log.lines().into_iter();
        lines
            .filter(|line| line.message == "runtime blocked")
            .collect()
    };
    for times in 0..2 {
        probed(&session).await;
        thread::sleep(tolerates / 4);
        probed(&session).await;
        assert_eq!(warnings().len(), times, "a quarter costs no hold");
        thread::sleep(tolerates / 2 + TIMEOUT / 10);
        probed(&session).await;
        probed(&session).await;
        assert_eq!(warnings().len(), times + 1);
    }
    let fields = &warnings()[0].fields;
    let id = session.id().expect("it is open").to_string();
    assert_eq!(fields.get("session"), Some(&id));
    assert_eq!(fields.get("tolerates"), Some(&format!("{tolerates:?}")));
    session.close().await;
}
