//! The semaphore keeps what every recipe promises.

use zookeeper_recipes_suite::{SEMAPHORE, TestedRecipe, conforms};

const OF_THREE: TestedRecipe = SEMAPHORE.of(3);

#[tokio::test(flavor = "multi_thread")]
async fn the_semaphore_conforms() {
    conforms(OF_THREE, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_permits_at_a_time_conform() {
    conforms(OF_THREE, 2).await;
}
