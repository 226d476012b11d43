//! The election keeps what every recipe promises.

use zookeeper_recipes_election::WaitStrategy;
use zookeeper_recipes_suite::{ELECTION, conforms};

#[tokio::test(flavor = "multi_thread")]
async fn the_election_conforms() {
    conforms(ELECTION, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_election_that_watches_the_parent_conforms() {
    conforms(ELECTION.waiting(WaitStrategy::Parent), 1).await;
}
