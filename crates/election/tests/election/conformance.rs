//! The election keeps what every recipe promises.

use zookeeper_recipes_suite::{ELECTION, conforms};

#[tokio::test(flavor = "multi_thread")]
async fn the_election_conforms() {
    conforms(ELECTION, 1).await;
}
