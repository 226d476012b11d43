//! The locks keep what every recipe promises.

use zookeeper_recipes_suite::{
    LOCK, LOCK_BY_PARENT, LOCK_BY_POLLING, LOCK_OF_A_NAME, LOCK_OF_ONE_ZNODE, POLL, conforms,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_exclusive_lock_conforms() {
    conforms(LOCK, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exclusive_lock_of_a_name_conforms() {
    conforms(LOCK_OF_A_NAME, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exclusive_lock_that_watches_the_parent_conforms() {
    conforms(LOCK_BY_PARENT, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exclusive_lock_that_polls_conforms() {
    conforms(LOCK_BY_POLLING.waiting(POLL), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_single_node_lock_conforms() {
    conforms(LOCK_OF_ONE_ZNODE, 1).await;
}
