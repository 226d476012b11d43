//! What the tests share.

use std::sync::Arc;

use tokio::task::JoinHandle;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, Error, Hold, Permission, Recipe, Session};
use zookeeper_recipes_overview::{ContenderState, Overview, QueueStatus};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::{eventually, simulated_session};

/// The unique part of a contender's name, in Curator's form, in go-zookeeper's and in kazoo's.
pub(crate) const CURATOR: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-";
pub(crate) const GO: &str = "_c_0123456789abcdef0123456789abcdef-";
pub(crate) const KAZOO: &str = "0123456789abcdef0123456789abcdef";

/// A process that looks.
pub(crate) const VIEWER: &str = "viewer";

pub(crate) async fn viewer(simulation: &Simulation) -> Session {
    simulated_session(simulation, VIEWER).await
}

pub(crate) async fn look(session: &Session) -> Overview {
    Overview::below(session, "/").await.expect("a look")
}

/// A client of any language, with a session of its own.
pub(crate) async fn client(simulation: &Simulation, name: &str) -> Arc<ServerSession> {
    let connected = simulation.process(name).connect().await;
    connected.expect("a session opens")
}

pub(crate) fn everyone() -> [Acl; 1] {
    [Acl::new(Permission::ALL, AuthId::anyone())]
}

pub(crate) fn create(simulation: &Simulation, path: &str, data: &str) {
    let administrator = simulation.administrator();
    let created = administrator.create(path, data.as_bytes(), CreateMode::Persistent);
    created.expect("it is new");
}

/// Adds a contender as a client in any language does, and returns the path of its znode.
pub(crate) async fn queue(client: &ServerSession, prefix: &str, data: &str) -> String {
    let mode = CreateMode::EphemeralSequential;
    let created = client
        .create(prefix, data.as_bytes(), mode, &everyone())
        .await;
    created.expect("a contender queues").path
}

/// The state and the owner of each contender.
pub(crate) fn rows(queue: &QueueStatus) -> Vec<String> {
    let row = |it: zookeeper_recipes_overview::ContenderStatus| {
        let state = match &it.state {
            ContenderState::Holds => "holds".to_owned(),
            ContenderState::WaitsFor(places) => format!("waits for {places:?}"),
            ContenderState::Unknown => "unknown".to_owned(),
        };
        format!("{} {} {state}", it.owner, it.wants)
    };
    queue.contenders().map(row).collect()
}

/// Waits until so many contenders are in a directory.
pub(crate) async fn until_queued(simulation: &Simulation, path: &str, number: usize) {
    let administrator = simulation.administrator();
    eventually("the contenders have queued", async || {
        administrator.children(path).len() == number
    })
    .await;
}

/// A task that acquires, and keeps the hold as its output.
pub(crate) type Waiter = JoinHandle<Result<Hold, Error>>;

pub(crate) fn waiter(recipe: Box<dyn Recipe>) -> Waiter {
    tokio::spawn(async move { recipe.acquire().await })
}
