//! The election keeps what every recipe promises.

use zookeeper_recipes_election::{ElectionOptions, LeaderElection, Recipe, Session, WaitStrategy};
use zookeeper_recipes_testkit::conformance::Conformance;
use zookeeper_recipes_testkit::{Server, ServerOptions};

async fn conforms(strategy: WaitStrategy) {
    let server = Server::start(ServerOptions::new())
        .await
        .expect("a server starts");
    let make = |session: &Session, path: &str| {
        let options = ElectionOptions::new().strategy(strategy);
        let election = LeaderElection::with_options(session, path, "node-7", options);
        Box::new(election.expect("a good path")) as Box<dyn Recipe>
    };
    Conformance::new(&server, make)
        .check()
        .await
        .expect("it conforms");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_election_conforms() {
    conforms(WaitStrategy::Predecessor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_election_that_watches_the_parent_conforms() {
    conforms(WaitStrategy::Parent).await;
}
