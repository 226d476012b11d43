//! What the tests of the simulation have in common.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Permission, ServerSession};
use zookeeper_recipes_core::{Refusal, ServerError};
use zookeeper_recipes_simulation::{Change, Simulation};

/// Two seconds.
pub(crate) const TICK: Duration = Duration::from_secs(2);
/// Three ticks.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(6);
/// After five ticks servers that do not hear each other give each other up.
pub(crate) const GIVEN_UP: Duration = Duration::from_secs(10);

pub(crate) fn everyone() -> Vec<Acl> {
    vec![Acl::new(Permission::ALL, AuthId::anyone())]
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// So many servers, with the default options else.
pub(crate) fn servers(seed: u64, servers: usize) -> Simulation {
    Simulation::with(|it| (it.seed, it.servers) = (seed, servers))
}

/// Creates a znode by hand.
pub(crate) fn make(simulation: &Simulation, path: &str) {
    let administrator = simulation.administrator();
    let made = administrator.create(path, b"", CreateMode::Persistent);
    made.unwrap();
}

pub(crate) async fn connect(simulation: &Simulation, process: &str) -> Arc<ServerSession> {
    simulation.process(process).connect().await.unwrap()
}

pub(crate) async fn create(session: &ServerSession, path: &str, mode: CreateMode) -> String {
    let created = session.create(path, b"", mode, everyone()).await;
    created.unwrap().path
}

pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, ServerError>) -> Refusal {
    match result {
        Err(ServerError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn is_unknown<T>(result: &Result<T, ServerError>) -> bool {
    matches!(result, Err(ServerError::OutcomeUnknown(_)))
}

/// A session of this process that is connected to this server.
pub(crate) async fn connect_to(
    simulation: &Simulation,
    process: &str,
    server: usize,
) -> Arc<ServerSession> {
    loop {
        let session = connect(simulation, process).await;
        if simulation.administrator().server_of(session.id) == Some(server) {
            return session;
        }
    }
}

/// The one session of this process, which is connected to this server.
pub(crate) async fn connect_alone_to(
    simulation: &Simulation,
    process: &str,
    server: usize,
) -> Arc<ServerSession> {
    let session = connect_to(simulation, process, server).await;
    // The sessions before it are being closed.
    sleep(milliseconds(20)).await;
    session
}

pub(crate) async fn create_ephemeral(session: &ServerSession, path: &str) {
    create(session, path, CreateMode::Ephemeral).await;
}

/// True if the future resolves within this time.
pub(crate) async fn comes<F: Future>(within: Duration, future: F) -> bool {
    tokio::time::timeout(within, future).await.is_ok()
}

pub(crate) fn when_ended(simulation: &Simulation, session: &ServerSession) -> Option<Duration> {
    let history = simulation.history();
    let ended = history.iter().find(|committed| {
        matches!(committed.change, Change::SessionEnded { session: ended, .. } if ended == session.id)
    });
    ended.map(|committed| committed.at)
}
