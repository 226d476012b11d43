//! The recipes over the client of the crate `zookeeper-client` keep their promises.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_client::Client;
use zookeeper_recipes_adapter::ClientEnsemble;
use zookeeper_recipes_core::ensemble::{ConnectionOption, Connector, ServerSession};
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
    Session::open(Arc::new(NewClients { address }), options).await
}

/// Connects a client for each session.
#[derive(Debug)]
struct NewClients {
    address: String,
}

impl Ensemble for NewClients {
    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        let mut session_timeout = None;
        for option in options.of_connections() {
            match option {
                ConnectionOption::SessionTimeout(timeout) => session_timeout = Some(timeout),
                ConnectionOption::Auth { .. } | ConnectionOption::Tls => {
                    option.refuse("a client of the suite")?;
                }
            }
        }
        let address = self.address.clone();
        let session_timeout = session_timeout.expect("the suite sets it");
        Ok(Arc::new(NewClient {
            address,
            session_timeout,
        }))
    }

    fn now(&self) -> Duration {
        zookeeper_recipes_core::ensemble::now()
    }

    fn address(&self) -> String {
        self.address.clone()
    }
}

#[derive(Debug)]
struct NewClient {
    address: String,
    session_timeout: Duration,
}

impl Connector for NewClient {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        async move {
            let connector = Client::connector().with_session_timeout(self.session_timeout);
            let client = connector.connect(&self.address).await;
            let client = client.map_err(ServerError::outcome_unknown)?;
            ClientEnsemble::new(client).connect().await
        }
        .boxed()
    }

    fn asked_timeout(&self) -> Option<Duration> {
        Some(self.session_timeout)
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
