//! The recipes over the client of the crate `zookeeper-client` keep their promises.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use zookeeper_client::Client;
use zookeeper_recipes_adapter::ClientEnsemble;
use zookeeper_recipes_core::ensemble::{EnsembleFacts, ServerSession};
use zookeeper_recipes_core::{ConnectOptions, Ensemble, Error, ServerError, Session};
use zookeeper_recipes_suite::{
    ELECTION, LOCK, LOCK_OF_ONE_ZNODE, RWLOCK, SEMAPHORE, TestedRecipe, WRITER, conformance, server,
};
use zookeeper_recipes_testkit::fake::{FakeEnsemble, Open};

async fn conforms(recipe: TestedRecipe, weight: u64) {
    let server = server().await;
    let checked = conformance(&server, recipe, weight).sessions(session);
    checked.check().await.expect("it conforms");
}

/// A session that connects a client for each of its ZooKeeper sessions.
async fn session(address: String, options: ConnectOptions) -> Result<Session, Error> {
    let facts = EnsembleFacts::new(address.clone());
    let connector = move |options: &ConnectOptions| {
        options.refuse_all_but(&["session_timeout"], "a client of the suite")?;
        let timeout = options.asked_session_timeout().expect("the suite sets it");
        let address = address.clone();
        let open: Open = Box::new(move || connect(address.clone(), timeout).boxed());
        Ok(open)
    };
    let connector = Box::new(connector);
    Session::open(Arc::new(FakeEnsemble { facts, connector }), options).await
}

async fn connect(address: String, timeout: Duration) -> Result<ServerSession, ServerError> {
    let client = Client::connector().with_session_timeout(timeout);
    let client = client.connect(&address).await;
    let ensemble = ClientEnsemble::new(client.map_err(ServerError::outcome_unknown)?);
    let connector = Arc::new(ensemble).connector(&ConnectOptions::new());
    connector.expect("no option is set").connect().await
}

/// A test of each row: this recipe conforms, for contenders of this weight.
macro_rules! conform {
    ($($name:ident: $recipe:expr, $weight:expr;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                conforms($recipe, $weight).await;
            }
        )+
    };
}

conform! {
    the_exclusive_lock_conforms: LOCK, 1;
    the_single_node_lock_conforms: LOCK_OF_ONE_ZNODE, 1;
    the_write_lock_conforms: RWLOCK, WRITER;
    the_read_lock_conforms: RWLOCK, 1;
    the_semaphore_conforms: SEMAPHORE, 1;
    the_election_conforms: ELECTION, 1;
}
