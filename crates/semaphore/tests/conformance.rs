//! The semaphore keeps what every recipe promises.

use zookeeper_recipes_semaphore::{Recipe, Semaphore, SemaphoreOptions, Session, WaitStrategy};
use zookeeper_recipes_testkit::conformance::Conformance;
use zookeeper_recipes_testkit::{Server, ServerOptions};

const PERMITS: u32 = 3;

/// Of three permits, with this many acquired at a time, so many can hold.
async fn conforms(strategy: WaitStrategy, weight: u32, holders: usize) {
    let server = Server::start(ServerOptions::new())
        .await
        .expect("a server starts");
    let make = |session: &Session, path: &str| {
        let options = SemaphoreOptions::new().strategy(strategy);
        let semaphore = Semaphore::with_options(session, path, PERMITS, options);
        let permits = semaphore.expect("a good path").permits(weight);
        Box::new(permits.expect("a good weight")) as Box<dyn Recipe>
    };
    Conformance::new(&server, make)
        .holders(holders)
        .check()
        .await
        .expect("it conforms");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_semaphore_conforms() {
    conforms(WaitStrategy::Predecessor, 1, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_semaphore_that_watches_the_parent_conforms() {
    conforms(WaitStrategy::Parent, 1, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_permits_at_a_time_conform() {
    conforms(WaitStrategy::Predecessor, 2, 1).await;
}
