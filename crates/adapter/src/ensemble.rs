//! The ensemble of a client that the caller has connected.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_client::Client;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Ensemble, ServerError, SessionEnd};

use crate::session::ClientSession;

/// The ensemble of a client that the caller has connected. It has one session, and opens no other.
///
/// Does not open a new ZooKeeper session when the client's session is over.
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
/// # The lease
///
/// The time of the last contact with the server is not known. So the first hold is granted after
/// the lease is renewed, which takes about a third of the session timeout.
pub struct ClientEnsemble {
    client: Mutex<Option<Client>>,
    chroot: String,
}

impl ClientEnsemble {
    /// The ensemble of this client. Sends nothing.
    pub fn new(client: Client) -> ClientEnsemble {
        let chroot = client.path().to_owned();
        ClientEnsemble {
            client: Mutex::new(Some(client)),
            chroot,
        }
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
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        let client = self
            .client
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        async move {
            match client {
                Some(client) => Ok(Arc::new(ClientSession {
                    client,
                    watched: Arc::default(),
                    own_identity: None,
                    is_anonymous: false,
                }) as Arc<dyn ServerSession>),
                None => Err(ServerError::SessionOver(SessionEnd::Closed)),
            }
        }
        .boxed()
    }

    fn opens_sessions(&self) -> bool {
        false
    }

    fn now(&self) -> Duration {
        zookeeper_recipes_core::ensemble::now()
    }

    fn address(&self) -> String {
        "the client passed to ClientEnsemble".to_owned()
    }

    fn chroot(&self) -> &str {
        &self.chroot
    }
}
