//! The read/write lock keeps what every recipe promises.

use zookeeper_recipes_rwlock::WaitStrategy;
use zookeeper_recipes_suite::{RWLOCK, WRITER, conforms};

#[tokio::test(flavor = "multi_thread")]
async fn the_write_lock_conforms() {
    conforms(RWLOCK, WRITER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_write_lock_that_watches_the_parent_conforms() {
    conforms(RWLOCK.waiting(WaitStrategy::Parent), WRITER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_read_lock_conforms() {
    conforms(RWLOCK, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_read_lock_that_watches_the_parent_conforms() {
    conforms(RWLOCK.waiting(WaitStrategy::Parent), 1).await;
}
