//! The ensemble over the crate `zookeeper-client`.
//!
//! These facts of that crate matter here:
//!
//! * Its methods send the request when they are called.
//! * It reports most broken connections by other errors than connection loss. So each error that
//!   is not a definite answer counts as an unknown outcome.
//! * The session closes when the last `Client` is dropped.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_client as client;

use crate::invalid_input::InvalidInput;
use crate::server::client_session::ClientSession;
use crate::server::client_values::classify;
use crate::server::clock;
use crate::server::connect_string::{ConnectString, Host};
use crate::server::ensemble::{Ensemble, ServerSession};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::server::options::ConnectOptions;
use crate::server::own_identity::{self, OwnIdentity};
use crate::server::reach::{Unreachable, looked_at};
use crate::sync::lock;

/// A real ensemble, which is reached over the network.
pub struct ZookeeperEnsemble {
    connect_string: ConnectString,
    /// Why no host could be reached when the last session was opened.
    found: Mutex<Option<Unreachable>>,
    options: ConnectOptions,
    own_identity: OwnIdentity,
    /// True if a server has refused the library's own identity.
    identity_refused: AtomicBool,
}

impl ZookeeperEnsemble {
    /// The ensemble at these hosts. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if a host, a port or the chroot of the connect string is not well formed.
    pub fn new(
        connect_string: &str,
        options: ConnectOptions,
    ) -> Result<ZookeeperEnsemble, InvalidInput> {
        Ok(ZookeeperEnsemble {
            connect_string: ConnectString::new(connect_string)?,
            found: Mutex::default(),
            options,
            own_identity: OwnIdentity::random(),
            identity_refused: AtomicBool::new(false),
        })
    }

    /// Opens a session, with the library's own identity if the server accepts that.
    async fn open_as_possible(&self) -> Result<ClientSession, ServerError> {
        let identified = !self.identity_refused.load(Ordering::Relaxed);
        match self.open(identified).await {
            // A server may be configured not to know the scheme, and recipes work without it.
            Err(client::Error::AuthFailed) if identified => {
                let session = self.open(false).await.map_err(classify)?;
                self.identity_refused.store(true, Ordering::Relaxed);
                Ok(session)
            }
            opened => opened.map_err(classify),
        }
    }

    /// Opens a session, with or without the library's own identity.
    async fn open(&self, identified: bool) -> Result<ClientSession, client::Error> {
        let mut connector = self.options.connector();
        if identified {
            let credentials = self.own_identity.credentials();
            connector = connector.with_auth(own_identity::SCHEME, credentials.as_bytes());
        }
        Ok(ClientSession {
            client: connector.connect(&self.connect_string.text).await?,
            own_identity: identified.then(|| self.own_identity.auth_id()),
            is_anonymous: self.options.is_anonymous(),
        })
    }
}

impl fmt::Debug for ZookeeperEnsemble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ZookeeperEnsemble")
            .field("connect_string", &self.connect_string.text)
            .finish_non_exhaustive()
    }
}

impl Ensemble for ZookeeperEnsemble {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        async move {
            *lock(&self.found) = None;
            let note = |found: &Unreachable| *lock(&self.found) = Some(found.clone());
            tokio::select! {
                biased;
                session = self.open_as_possible() => Ok(Arc::new(session?) as _),
                unreachable = looked_at(&self.connect_string.hosts, note) => {
                    Err(ServerError::Refused(Refusal::Other(unreachable.to_string())))
                }
            }
        }
        .boxed()
    }

    fn now(&self) -> Duration {
        clock::now()
    }

    fn address(&self) -> String {
        self.connect_string.text.clone()
    }

    fn servers(&self) -> Vec<String> {
        let hosts = self.connect_string.hosts.iter();
        let named = hosts.map(|Host { name, port }| format!("{}:{port}", name.to_lowercase()));
        named.collect()
    }

    fn chroot(&self) -> &str {
        &self.connect_string.chroot
    }

    fn obstacle(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        let found = lock(&self.found).clone();
        found.map(|found| Arc::new(found) as _)
    }
}

/// A client that the user has connected. It has one session, and opens no other.
pub(crate) struct ConnectedClient {
    client: Mutex<Option<client::Client>>,
    chroot: String,
}

impl ConnectedClient {
    pub(crate) fn new(client: client::Client) -> ConnectedClient {
        let chroot = client.path().to_owned();
        ConnectedClient {
            client: Mutex::new(Some(client)),
            chroot,
        }
    }
}

impl fmt::Debug for ConnectedClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectedClient")
            .finish_non_exhaustive()
    }
}

impl Ensemble for ConnectedClient {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        let client = lock(&self.client).take();
        async move {
            match client {
                Some(client) => Ok(Arc::new(ClientSession {
                    client,
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
        clock::now()
    }

    fn address(&self) -> String {
        "the client passed to Session::from_client".to_owned()
    }

    fn chroot(&self) -> &str {
        &self.chroot
    }
}
