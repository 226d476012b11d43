//! The locks keep what every recipe promises.

use std::time::Duration;

use zookeeper_recipes_lock::{
    ExclusiveLock, LockOptions, Recipe, Session, SingleNodeLock, WaitStrategy,
};
use zookeeper_recipes_testkit::conformance::Conformance;
use zookeeper_recipes_testkit::{Server, ServerOptions};

async fn server() -> Server {
    Server::start(ServerOptions::new())
        .await
        .expect("a server starts")
}

async fn conforms(strategy: WaitStrategy) {
    let make = |session: &Session, path: &str| {
        let options = LockOptions::new().strategy(strategy);
        let lock = ExclusiveLock::with_options(session, path, options).expect("a good path");
        Box::new(lock) as Box<dyn Recipe>
    };
    Conformance::new(&server().await, make)
        .check()
        .await
        .expect("it conforms");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exclusive_lock_conforms() {
    conforms(WaitStrategy::Predecessor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exclusive_lock_that_watches_the_parent_conforms() {
    conforms(WaitStrategy::Parent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exclusive_lock_that_polls_conforms() {
    conforms(WaitStrategy::Poll(Duration::from_millis(20))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_single_node_lock_conforms() {
    let make = |session: &Session, path: &str| {
        Box::new(SingleNodeLock::new(session, path).expect("a good path")) as Box<dyn Recipe>
    };
    Conformance::new(&server().await, make)
        .unordered()
        .check()
        .await
        .expect("it conforms");
}
