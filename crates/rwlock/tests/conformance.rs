//! The read/write lock keeps what every recipe promises.

use zookeeper_recipes_rwlock::{Recipe, RwLock, RwLockOptions, Session, WaitStrategy};
use zookeeper_recipes_testkit::conformance::Conformance;
use zookeeper_recipes_testkit::{Server, ServerOptions};

async fn server() -> Server {
    Server::start(ServerOptions::new())
        .await
        .expect("a server starts")
}

fn lock(session: &Session, path: &str, strategy: WaitStrategy) -> RwLock {
    let options = RwLockOptions::new().strategy(strategy);
    RwLock::with_options(session, path, options).expect("a good path")
}

async fn writers_conform(strategy: WaitStrategy) {
    let write = |session: &Session, path: &str| {
        Box::new(lock(session, path, strategy).write().clone()) as Box<dyn Recipe>
    };
    Conformance::new(&server().await, write)
        .check()
        .await
        .expect("it conforms");
}

async fn readers_conform(strategy: WaitStrategy) {
    let read = |session: &Session, path: &str| {
        Box::new(lock(session, path, strategy).read().clone()) as Box<dyn Recipe>
    };
    let write = |session: &Session, path: &str| {
        Box::new(lock(session, path, strategy).write().clone()) as Box<dyn Recipe>
    };
    Conformance::new(&server().await, read)
        .shared(write)
        .check()
        .await
        .expect("it conforms");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_write_lock_conforms() {
    writers_conform(WaitStrategy::Predecessor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_write_lock_that_watches_the_parent_conforms() {
    writers_conform(WaitStrategy::Parent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_read_lock_conforms() {
    readers_conform(WaitStrategy::Predecessor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_read_lock_that_watches_the_parent_conforms() {
    readers_conform(WaitStrategy::Parent).await;
}
