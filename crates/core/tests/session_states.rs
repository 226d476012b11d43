//! What a session says of its connection, on a simulated ensemble.

use std::time::Duration;

use futures_util::StreamExt;
use zookeeper_recipes_core::{ConnectOptions, ErrorKind, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

#[tokio::test(start_paused = true)]
async fn session_is_connected_again_when_a_server_answers_and_never_once_it_is_closed() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = Session::open(simulation.ensemble("one"), ConnectOptions::new());
    let session = session.await.expect("a session opens");
    assert!(session.is_connected(), "{}", session.state());
    simulation.process("one").partition(Duration::from_secs(60));
    let mut states = session.states();
    while session.is_connected() {
        states.next().await;
    }
    session.wait_connected().await.expect("a server answers");
    assert!(session.is_connected(), "{}", session.state());
    session.clone().close().await;
    let over = session.wait_connected().await.expect_err("it is closed");
    assert!(!over.is_retryable() && !over.is_timeout(), "{over}");
    assert_eq!(over.kind(), ErrorKind::SessionOver);
}
