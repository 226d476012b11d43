//! The ensemble over the library's own connection.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_recipes_connection::{
    Config, Connection, ConnectionState, DisconnectReason, Network, Obstacle, UnsupportedRequests,
    tokio_is_paused,
};

use crate::invalid_input::InvalidInput;
use crate::server::connect_string::ConnectString;
use crate::server::ensemble::{
    AuthId, Connector, DEFAULT_TIMEOUT, Ensemble, EnsembleFacts, Scope, ServerSession, SessionId,
};
use crate::server::environment::{Environment, ThisMachine};
use crate::server::error::{ServerError, SessionEnd};
use crate::server::options::ConnectOptions;
use crate::sync::{Mutex, lock};

/// The longest reply that a session reads.
///
/// A server answers with a list of any length. `jute.maxbuffer` limits requests only.
const LONGEST_REPLY: usize = 64 << 20;

/// A real ensemble, which is reached over the network.
pub struct ZookeeperEnsemble {
    connect_string: ConnectString,
    facts: EnsembleFacts,
}

impl ZookeeperEnsemble {
    /// The ensemble at these hosts. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if a host, a port or the chroot of the connect string is not well formed,
    /// or if the clock of the tokio runtime is paused.
    pub fn new(connect_string: &str) -> Result<ZookeeperEnsemble, InvalidInput> {
        if tokio_is_paused() {
            let problem = "cannot be used over TCP: timeouts pass at once. Call \
                           tokio::time::resume() first, or use a simulated ensemble";
            return Err(InvalidInput::new("tokio clock", "paused", problem));
        }
        ZookeeperEnsemble::within(Arc::new(ThisMachine), DEFAULT_TIMEOUT, connect_string)
    }

    /// The ensemble at these hosts, in a simulated world, with this session timeout by default.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the connect string is not well formed.
    // Hidden: only a simulation replaces the network, the clock and the random numbers.
    #[doc(hidden)]
    pub fn within(
        environment: Arc<dyn Environment>,
        session_timeout: Duration,
        connect_string: &str,
    ) -> Result<ZookeeperEnsemble, InvalidInput> {
        let connect_string = ConnectString::new(connect_string)?;
        let hosts = connect_string.hosts.iter();
        let facts = EnsembleFacts {
            address: connect_string.text.clone(),
            servers: hosts.map(|host| host.to_string().to_lowercase()).collect(),
            chroot: connect_string.chroot.clone(),
            session_timeout: Some(session_timeout),
            environment,
        };
        Ok(ZookeeperEnsemble {
            connect_string,
            facts,
        })
    }
}

/// Opens the sessions of one [`Session`](crate::Session) with a real ensemble.
struct ZookeeperConnector {
    listed: Mutex<Listed>,
    environment: Arc<dyn Environment>,
    network: Arc<dyn Network>,
    /// Why no host could be reached when the last session was opened.
    obstacle: Mutex<Option<Arc<Unreachable>>>,
    session_timeout: Duration,
    options: ConnectOptions,
    scope: Scope,
    /// A random user and password, which only the servers of the ensemble get.
    ///
    /// They make the library's own identity, which no other client can show to the servers.
    own_credentials: [String; 2],
    /// What the sessions have learned of the servers.
    unsupported: UnsupportedRequests,
    /// True if the servers have refused the library's own identity.
    identity_refused: AtomicBool,
}

/// The hosts, which may be replaced, and the last session, which follows then.
struct Listed {
    connect_string: ConnectString,
    session: Weak<Connection>,
}

impl ZookeeperConnector {
    /// Opens a session, with the library's own identity if the servers accept that.
    async fn open_identified(&self) -> Result<ServerSession, ServerError> {
        *lock(&self.obstacle) = None;
        let identified = !self.identity_refused.load(Ordering::Relaxed);
        match self.open(identified).await {
            // A server may be configured not to know the scheme, and recipes work without it.
            Err(ServerError::SessionOver(SessionEnd::AuthenticationFailed)) if identified => {
                let session = self.open(false).await?;
                self.identity_refused.store(true, Ordering::Relaxed);
                Ok(session)
            }
            opened => opened,
        }
    }

    /// Opens a session, with or without the library's own identity.
    async fn open(&self, identified: bool) -> Result<ServerSession, ServerError> {
        let [user, password] = &self.own_credentials;
        let own = identified.then(|| format!("{user}:{password}").into_bytes());
        let auth = own.map(|own| ("digest".to_owned(), own));
        let auth = self.options.auth.iter().cloned().chain(auth);
        let mut opening = Opening {
            connector: self,
            connection: Some(self.begin(auth)),
        };
        let (connection, id, timeout) = opening.session().await?;
        Ok(ServerSession {
            opened_over: connection.opened_over(),
            connection_states: connection.states(),
            raw: connection,
            id: SessionId(id),
            timeout,
            own_identity: identified.then(|| AuthId::digest(user, password)),
            scope: self.scope.clone(),
            left_open: None,
        })
    }

    /// A connection to the present hosts, which follows if they are replaced.
    fn begin(&self, auth: impl Iterator<Item = Credentials>) -> Arc<Connection> {
        let mut listed = lock(&self.listed);
        let config = Config {
            hosts: listed.connect_string.hosts.clone(),
            session_timeout: self.session_timeout,
            auth: auth.collect(),
            reply_limit: LONGEST_REPLY,
            seed: (self.environment.random() >> 64) as u64,
            unsupported: self.unsupported.clone(),
        };
        let (connection, driver) = Connection::new(self.network.clone(), config);
        connection.limit_requests(self.options.jute_maxbuffer);
        tokio::spawn(self.environment.task(driver.boxed()));
        let connection = Arc::new(connection);
        listed.session = Arc::downgrade(&connection);
        connection
    }
}

/// A scheme, and the credentials for it.
type Credentials = (String, Vec<u8>);

const CLOSED: ServerError = ServerError::SessionOver(SessionEnd::Closed);

/// A connection whose session is not open yet. If dropped, the obstacles are noted.
struct Opening<'a> {
    connector: &'a ZookeeperConnector,
    connection: Option<Arc<Connection>>,
}

impl Opening<'_> {
    /// Waits for the session, and returns its connection, its id and its timeout.
    async fn session(&mut self) -> Result<(Arc<Connection>, i64, Duration), ServerError> {
        let connection = self.connection.as_ref().ok_or(CLOSED)?;
        let mut states = connection.states();
        let opened =
            states.wait_for(|state| !matches!(state, ConnectionState::Disconnected { .. }));
        match opened.await.as_deref().copied() {
            Ok(ConnectionState::Connected {
                session_id,
                timeout,
                ..
            }) => Ok((self.connection.take().ok_or(CLOSED)?, session_id, timeout)),
            Ok(ConnectionState::Ended(end)) => Err(ServerError::SessionOver(end)),
            Ok(ConnectionState::Disconnected { .. }) | Err(_) => Err(CLOSED),
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            let is_encrypted = self.connector.options.is_encrypted;
            let unreachable = Unreachable::new(&connection.obstacles(), is_encrypted);
            *lock(&self.connector.obstacle) = unreachable.map(Arc::new);
        }
    }
}

/// Why each host cannot be reached.
///
/// The text has the errors of the hosts, so they are not the source.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Unreachable {
    text: String,
    /// The end of the session, if a server has refused the credentials.
    source: Option<ServerError>,
}

impl Unreachable {
    fn new(obstacles: &[Obstacle], is_encrypted: bool) -> Option<Unreachable> {
        let mut causes = obstacles.iter().map(|obstacle| &obstacle.cause);
        let refused =
            causes.find(|cause| matches!(cause, DisconnectReason::AuthenticationFailed(_)));
        let over = ServerError::SessionOver(SessionEnd::AuthenticationFailed);
        let (text, source) = match refused {
            // A server has answered for all of them.
            Some(refused) => (refused.to_string(), Some(over)),
            None => (Obstacle::in_words(obstacles, is_encrypted), None),
        };
        (!obstacles.is_empty()).then_some(Unreachable { text, source })
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
    fn facts(&self) -> &EnsembleFacts {
        &self.facts
    }

    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        let environment = self.facts.environment.clone();
        let asked = options.session_timeout.or(self.facts.session_timeout);
        options.check_hosts(&self.connect_string)?;
        Ok(Arc::new(ZookeeperConnector {
            listed: Mutex::new(Listed {
                connect_string: self.connect_string.clone(),
                session: Weak::new(),
            }),
            network: environment.network(options)?,
            options: options.clone(),
            scope: options.scope(&self.connect_string.chroot),
            obstacle: Mutex::default(),
            session_timeout: asked.unwrap_or(DEFAULT_TIMEOUT),
            own_credentials: [environment.random(), environment.random()]
                .map(|number| format!("{number:032x}")),
            environment,
            unsupported: UnsupportedRequests::default(),
            identity_refused: AtomicBool::new(false),
        }))
    }
}

impl Connector for ZookeeperConnector {
    fn connect(&self) -> BoxFuture<'_, Result<ServerSession, ServerError>> {
        self.open_identified().boxed()
    }

    fn set_hosts(&self, connect_string: &str) -> Result<(), InvalidInput> {
        let new = ConnectString::new(connect_string)?;
        self.options.check_hosts(&new)?;
        let mut listed = lock(&self.listed);
        let chroot = &listed.connect_string.chroot;
        if new.chroot != *chroot {
            let problem = format!(
                "has the chroot {}, and this session has {chroot}: open another session",
                new.chroot
            );
            return Err(InvalidInput::new("connect string", new.text, problem));
        }
        let hosts = new.hosts.clone();
        listed.connect_string = new;
        let session = listed.session.upgrade();
        drop(listed);
        if let Some(session) = session {
            session.set_hosts(&hosts);
        }
        Ok(())
    }

    fn obstacle(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        lock(&self.obstacle).clone().map(|found| found as _)
    }
}
