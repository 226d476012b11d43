//! Sessions that are opened in the background.

use std::time::Duration;

use zookeeper_recipes_core::{ConnectOptions, Error, Queue, Session, SessionState};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

use crate::support::First;

#[tokio::test(start_paused = true)]
async fn session_opened_in_the_background_is_there_once_a_server_answers() {
    let simulation = Simulation::new(SimulationOptions::default());
    let process = simulation.process("p");
    process.partition(Duration::from_secs(30));
    let session = Session::open_in_background(process.ensemble(), ConnectOptions::new());
    let session = session.expect("good options");
    assert_eq!(session.state(), SessionState::Opening);
    assert!(!session.is_connected());
    let queue = Queue::new(&session, "/queue", First).expect("a good path");
    let refused = queue.acquire_timeout(Duration::from_secs(5)).await;
    let refused = refused.expect_err("no server answers");
    assert!(refused.is_timeout(), "{refused}");
    let hold = queue.acquire_timeout(Duration::from_secs(60)).await;
    assert!(hold.expect("a server answers by now").is_held());
    assert!(session.is_connected());
}

#[tokio::test(start_paused = true)]
async fn session_closed_before_it_is_open_is_over() {
    let simulation = Simulation::new(SimulationOptions::default());
    let process = simulation.process("p");
    process.partition(Duration::from_secs(30));
    let session = Session::open_in_background(process.ensemble(), ConnectOptions::new());
    let session = session.expect("good options");
    let waiting = session.clone();
    let waiting = tokio::spawn(async move { waiting.wait_connected().await });
    session.close().await;
    let outcome = waiting.await.expect("no panic");
    assert!(
        matches!(outcome, Err(Error::NoSession { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn bad_connect_string_is_refused_before_anything_is_done_in_the_background() {
    let refused = Session::connect_in_background("zoo:port", ConnectOptions::new());
    assert!(refused.is_err());
    let refused = Session::connect("zoo:port").await;
    assert!(
        matches!(refused, Err(Error::InvalidInput(_))),
        "{refused:?}"
    );
}
