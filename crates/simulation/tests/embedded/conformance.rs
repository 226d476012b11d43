//! Every recipe keeps its promises on the embedded server, as on Apache's.

use futures_util::future::join_all;
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::{ELECTION, LOCK, LOCK_OF_ONE_ZNODE, RWLOCK, SEMAPHORE, conforms_on};

#[tokio::test(flavor = "multi_thread")]
async fn each_recipe_conforms() {
    let recipes = [
        (LOCK, 1),
        (LOCK_OF_ONE_ZNODE, 1),
        (RWLOCK, RWLOCK.capacity),
        (RWLOCK, 1),
        (SEMAPHORE, 2),
        (ELECTION, 1),
    ];
    let conform = recipes.map(async |(recipe, weight)| {
        let server = EmbeddedServer::start().expect("it starts");
        conforms_on(&server, recipe, weight).await;
    });
    join_all(conform).await;
}
