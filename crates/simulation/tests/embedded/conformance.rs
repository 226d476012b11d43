//! Every recipe keeps its promises on the embedded server, as on Apache's.

use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::{
    ELECTION, LOCK, LOCK_OF_ONE_ZNODE, RWLOCK, SEMAPHORE, TestedRecipe, conforms_on,
};

async fn conforms(recipe: TestedRecipe, weight: u64) {
    let server = EmbeddedServer::start().expect("it starts");
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
