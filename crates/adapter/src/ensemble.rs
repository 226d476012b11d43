//! The ensemble of a client that the caller has connected.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_client::Client;
use zookeeper_recipes_core::ensemble::{Connector, EnsembleFacts, Scope, ServerSession};
use zookeeper_recipes_core::{
    ConnectOptions, Ensemble, InvalidInput, NodePath, ServerError, SessionEnd,
};

use crate::fence::Fence;
use crate::session::ClientSession;

/// The ensemble of a client that the caller has connected. It has one session, and opens no other.
///
/// The ensemble does not open a new ZooKeeper session when the client's session is over. The session
/// timeout, credentials and TLS are options of the client. A `Session` refuses them for this
/// ensemble.
///
/// # The end of the session
///
/// The client's session stays open at the server until all other clones of the client are dropped.
/// So do its ephemeral znodes.
///
/// * [`Session::close`](zookeeper_recipes_core::Session::close) deletes the znodes of the holds and
///   the waiters, one by one, and repeats this for at most the session timeout.
/// * If the runtime of the session shuts down, the session sends the deletions of the znodes that it
///   knows by name, and waits for no answer. The znode of a create without a reply may stay, and
///   that of a recipe of one znode, which may belong to another client by now.
///
/// The event `znodes left` names the znodes that may stay. Drop the client then: they bar other
/// contenders for as long as its session lives.
///
/// # The guard
///
/// Some servers answer a reconnect with a new session, and the client takes it over in silence. So
/// the session keeps an ephemeral znode, the *guard*. After a reconnect it creates the guard anew,
/// and sends nothing else before the answer names the owner. If another session owns the guard, the
/// session is over. Each deletion and each transaction also checks that the guard exists.
///
/// | | requests | round trips | watches |
/// |---|---|---|---|
/// | the opening: a create | 1 | 1 | 0 |
/// | a reconnect: a create and a delete | 2 | 1 before other requests are sent | 0 |
/// | a deletion: a transaction of a delete and a check | as before | as before | 0 |
///
/// The guard is at the root, or in the directory of [`guard_in`](Self::guard_in).
///
/// # The lease
///
/// The time of the last contact with the server is not known. So the first hold is granted after
/// the lease is renewed, which takes about a third of the session timeout.
pub struct ClientEnsemble {
    client: Mutex<Option<Client>>,
    facts: EnsembleFacts,
    /// The directory of the guard, below the chroot. Empty for the root.
    directory: String,
}

impl ClientEnsemble {
    /// The ensemble of this client. The call sends nothing.
    ///
    /// The session fails to open if the client may not create a znode at the root: see
    /// [`guard_in`](Self::guard_in).
    pub fn new(client: Client) -> ClientEnsemble {
        ClientEnsemble {
            facts: EnsembleFacts {
                chroot: client.path().to_owned(),
                session_timeout: None,
                ..EnsembleFacts::new("the client passed to ClientEnsemble")
            },
            client: Mutex::new(Some(client)),
            directory: String::new(),
        }
    }

    /// Keeps the guard of the session in this directory, not at the root.
    ///
    /// The directory must exist, and the client must be allowed to create and to delete its
    /// children. It should not be the path of a recipe.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `directory` is not a path of a znode.
    pub fn guard_in(mut self, directory: &str) -> Result<ClientEnsemble, InvalidInput> {
        let directory = NodePath::new(directory)?;
        directory.as_str().clone_into(&mut self.directory);
        Ok(self)
    }
}

impl fmt::Debug for ClientEnsemble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientEnsemble")
            .finish_non_exhaustive()
    }
}

impl Ensemble for ClientEnsemble {
    fn facts(&self) -> &EnsembleFacts {
        &self.facts
    }

    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        options.refuse_all_but(
            &[],
            "a client that you have connected: set it at the client",
        )?;
        let mut scope = options.scope(&self.facts.chroot);
        // The client does not say.
        scope.is_anonymous = false;
        let ensemble = self;
        Ok(Arc::new(ClientConnector { ensemble, scope }))
    }
}

/// Opens the one session of a client.
#[derive(Debug)]
struct ClientConnector {
    ensemble: Arc<ClientEnsemble>,
    scope: Scope,
}

impl Connector for ClientConnector {
    fn connect(&self) -> BoxFuture<'_, Result<ServerSession, ServerError>> {
        let client = &self.ensemble.client;
        let client = client.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            let over = ServerError::SessionOver(SessionEnd::Closed);
            // The paths of the requests are those at the server.
            let client = client
                .and_then(|client| client.chroot("/").ok())
                .ok_or(over)?;
            let ensemble = &self.ensemble;
            let chroot = ensemble.facts.chroot.trim_end_matches('/');
            let directory = format!("{chroot}{}", ensemble.directory);
            let fence = Fence::raise(client.clone(), directory).await?;
            Ok(ClientSession::open(client, fence, self.scope.clone()))
        }
        .boxed()
    }
}
