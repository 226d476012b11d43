//! Every recipe keeps its promises on the embedded server, as on Apache's.

use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::{
    ELECTION, LOCK, LOCK_OF_ONE_ZNODE, RWLOCK, SEMAPHORE, TestedRecipe, conforms_on,
};
use zookeeper_recipes_testkit::conformance::CheckedServer;

struct Embedded(EmbeddedServer);

impl CheckedServer for Embedded {
    fn connect_string(&self) -> String {
        self.0.connect_string()
    }

    fn pause(&self) -> Result<(), String> {
        self.0.pause();
        Ok(())
    }

    fn resume(&self) -> Result<(), String> {
        self.0.resume();
        Ok(())
    }
}

async fn conforms(recipe: TestedRecipe, weight: u64) {
    let server = Embedded(EmbeddedServer::start().expect("it starts"));
    conforms_on(&server, recipe, weight).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exclusive_lock_conforms() {
    conforms(LOCK, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_of_one_znode_conforms() {
    conforms(LOCK_OF_ONE_ZNODE, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn write_lock_conforms() {
    conforms(RWLOCK, RWLOCK.capacity).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn read_lock_conforms() {
    conforms(RWLOCK, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn semaphore_conforms() {
    conforms(SEMAPHORE, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn election_conforms() {
    conforms(ELECTION, 1).await;
}
