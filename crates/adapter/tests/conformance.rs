//! The recipes over the client of the crate `zookeeper-client` keep their promises.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_client::Client;
use zookeeper_recipes_adapter::ClientEnsemble;
use zookeeper_recipes_core::ensemble::{ConnectionOption, Connector, EnsembleFacts, OpenedSession};
use zookeeper_recipes_core::{ConnectOptions, Ensemble, Error, InvalidInput, ServerError, Session};
use zookeeper_recipes_suite::{
    ELECTION, LOCK, LOCK_OF_ONE_ZNODE, RWLOCK, SEMAPHORE, TestedRecipe, WRITER, conformance, server,
};

async fn conforms(recipe: TestedRecipe, weight: u64) {
    let server = server().await;
    let checked = conformance(&server, recipe, weight).sessions(session);
    checked.check().await.expect("it conforms");
}

async fn session(address: String, options: ConnectOptions) -> Result<Session, Error> {
    let facts = EnsembleFacts::new(address);
    Session::open(Arc::new(NewClients { facts }), options).await
}

/// Connects a client for each session.
#[derive(Debug)]
struct NewClients {
    facts: EnsembleFacts,
}

impl Ensemble for NewClients {
    fn facts(&self) -> &EnsembleFacts {
        &self.facts
    }

    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        options.refuse_all_but(&[ConnectionOption::SessionTimeout], "a client of the suite")?;
        let (address, options) = (self.facts.address.clone(), options.clone());
        Ok(Arc::new(NewClient { address, options }))
    }
}

#[derive(Debug)]
struct NewClient {
    address: String,
    options: ConnectOptions,
}

impl Connector for NewClient {
    fn connect(&self) -> BoxFuture<'_, Result<OpenedSession, ServerError>> {
        async move {
            let timeout = self.options.asked_session_timeout();
            let connector = Client::connector();
            let connector = connector.with_session_timeout(timeout.expect("the suite sets it"));
            let client = connector.connect(&self.address).await;
            let client = client.map_err(ServerError::outcome_unknown)?;
            let ensemble = Arc::new(ClientEnsemble::new(client));
            let connector = ensemble.connector(&ConnectOptions::new());
            let connector = connector.expect("no option is set");
            connector.connect().await
        }
        .boxed()
    }
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
