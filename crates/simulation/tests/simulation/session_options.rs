//! The options of a session count on a simulated ensemble as over TCP.

use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Permission};
use zookeeper_recipes_core::{ConnectOptions, NodePath, Refusal, ServerError, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

const SHORT: Duration = Duration::from_secs(4);
async fn open(simulation: &Simulation, options: ConnectOptions) -> Session {
    let opened = Session::open(simulation.ensemble("one"), options).await;
    opened.expect("a session opens")
}

async fn create_for_its_creator(session: &Session, path: &str) -> Result<(), ServerError> {
    let at = NodePath::new(path).expect("a good path");
    let server = session.server(&at).await.expect("it is open");
    let acl = [Acl::new(Permission::ALL, AuthId::authed())];
    let created = server.create(path, b"", CreateMode::Persistent, &acl);
    created.await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn session_timeout_of_the_session_counts_before_that_of_the_simulation() {
    let simulation = Simulation::default();
    let short = open(&simulation, ConnectOptions::new().session_timeout(SHORT)).await;
    assert_eq!(short.timeout(), Some(SHORT));
    let usual = open(&simulation, ConnectOptions::new()).await;
    let of_the_simulation = SimulationOptions::default().session_timeout;
    assert_eq!(usual.timeout(), Some(of_the_simulation));
}

#[tokio::test(start_paused = true)]
async fn credentials_of_the_session_are_shown_to_the_servers() {
    let simulation = Simulation::default();
    let options = ConnectOptions::new().auth("digest", "one:secret");
    let one = open(&simulation, options).await;
    let created = create_for_its_creator(&one, "/own").await;
    created.expect("it has credentials");
    let (_, stat) = {
        let path = NodePath::new("/own").expect("a good path");
        let server = one.server(&path).await.expect("it is open");
        server.get("/own").await.expect("its creator may read it")
    };
    assert_eq!(stat.version, 0);
    let two = open(&simulation, ConnectOptions::new()).await;
    let path = NodePath::new("/own").expect("a good path");
    let server = two.server(&path).await.expect("it is open");
    let read = server.get("/own").await;
    assert!(read.is_err_and(|error| error.is(Refusal::NoAuth)));
}

#[tokio::test(start_paused = true)]
async fn session_after_an_expiry_has_the_same_options() {
    let simulation = Simulation::default();
    let options = ConnectOptions::new().session_timeout(SHORT);
    let session = open(&simulation, options.auth("digest", "one:secret")).await;
    let first = session.id().expect("it is open");
    simulation.administrator().expire(first);
    while session.id().is_none_or(|id| id == first) {
        sleep(SHORT).await;
    }
    assert_eq!(session.timeout(), Some(SHORT));
    let created = create_for_its_creator(&session, "/second").await;
    created.expect("it shows its credentials");
}
