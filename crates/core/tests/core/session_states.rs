//! What a session says of its connection, on a simulated ensemble.

use std::time::Duration;

use futures_util::StreamExt;
use zookeeper_recipes_core::ErrorKind;
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

#[tokio::test(start_paused = true)]
async fn session_is_connected_again_when_a_server_answers_and_never_once_it_is_closed() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
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
