//! A paused tokio clock, with which nothing over TCP can work.

use zookeeper_recipes_core::{ConnectOptions, Error, Session};
use zookeeper_recipes_simulation::{EmbeddedServer, StartError};

#[tokio::test(start_paused = true)]
async fn paused_clock_is_named_at_once_and_a_clock_that_runs_is_not() {
    let refused = EmbeddedServer::start();
    assert!(
        matches!(refused, Err(StartError::PausedClock)),
        "{refused:?}"
    );
    tokio::time::resume();
    let server = EmbeddedServer::start().expect("the clock runs");
    let address = server.connect_string();
    let session = Session::connect(&address).await.expect("the clock runs");
    session.close().await;
    tokio::time::pause();
    let refused = Session::connect(&address).await;
    let Err(error @ Error::InvalidInput(_)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        error.to_string().contains(r#"tokio clock "paused""#),
        "{error}"
    );
    let refused = Session::connect_in_background(&address, ConnectOptions::new());
    assert!(refused.is_err(), "{refused:?}");
}

/// A server is often started before the runtime.
#[test]
fn embedded_server_starts_outside_a_runtime() {
    let server = EmbeddedServer::start();
    assert!(server.is_ok(), "{server:?}");
}
