//! The ensemble over the library's own connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_recipes_connection::{
    Config, Connection, ConnectionState, DisconnectReason, Network, Obstacle, Tcp,
    UnsupportedRequests, tokio_is_paused,
};

use crate::invalid_input::InvalidInput;
use crate::server::connect_string::ConnectString;
use crate::server::ensemble::{
    AuthId, Connector, DEFAULT_TIMEOUT, Ensemble, EnsembleFacts, Environment, Scope, ServerSession,
    SessionId,
};
use crate::server::error::{ServerError, SessionEnd};
use crate::server::options::ConnectOptions;
use crate::sync::{Mutex, lock};

/// The longest reply that a session reads.
///
/// A server answers with a list of any length. `jute.maxbuffer` limits requests only.
const LONGEST_REPLY: usize = 64 << 20;

/// A real ensemble, which is reached over the network.
#[derive(Debug)]
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
        ZookeeperEnsemble::within(Arc::new(Tcp::new()), DEFAULT_TIMEOUT, connect_string)
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
            listed: Mutex::new((self.connect_string.clone(), Weak::new())),
            network: environment.network(options)?,
            options: options.clone(),
            scope: options.scope(&self.facts.chroot),
            obstacles: Mutex::default(),
            session_timeout: asked.unwrap_or(DEFAULT_TIMEOUT),
            own_credentials: [environment.random(), environment.random()]
                .map(|number| format!("{number:032x}")),
            environment,
            unsupported: UnsupportedRequests::default(),
            identity_refused: AtomicBool::new(false),
        }))
    }
}

/// Opens the sessions of one [`Session`](crate::Session) with a real ensemble.
struct ZookeeperConnector {
    /// The hosts, which may be replaced, and the last session, which follows then.
    listed: Mutex<(ConnectString, Weak<Connection>)>,
    environment: Arc<dyn Environment>,
    network: Arc<dyn Network>,
    /// Why no host could be reached when the last session was opened. Empty if it was opened.
    obstacles: Mutex<Vec<Obstacle>>,
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

impl ZookeeperConnector {
    /// Opens a session, with the library's own identity if the servers accept that.
    async fn open_identified(&self) -> Result<ServerSession, ServerError> {
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
        let connection = self.begin(identified);
        let opening = Opening(self, &connection);
        let mut states = connection.states();
        let opened =
            states.wait_for(|state| !matches!(state, ConnectionState::Disconnected { .. }));
        let opened = opened.await.map(|state| *state);
        let (id, timeout) = match opened {
            Ok(ConnectionState::Connected {
                session_id,
                timeout,
                ..
            }) => (session_id, timeout),
            Ok(ConnectionState::Ended(end)) => return Err(ServerError::SessionOver(end)),
            _ => return Err(ServerError::SessionOver(SessionEnd::Closed)),
        };
        drop(opening);
        lock(&self.obstacles).clear();
        let [user, password] = &self.own_credentials;
        Ok(ServerSession {
            opened_over: connection.opened_over(),
            connection_states: states,
            raw: connection,
            id: SessionId(id),
            timeout,
            own_identity: identified.then(|| AuthId::digest(user, password)),
            scope: self.scope.clone(),
            left_open: None,
        })
    }

    /// A connection to the present hosts, which follows if they are replaced.
    fn begin(&self, identified: bool) -> Arc<Connection> {
        let own = format!("{}:{}", self.own_credentials[0], self.own_credentials[1]);
        let own = identified.then(|| ("digest".to_owned(), own.into_bytes()));
        let mut listed = lock(&self.listed);
        let config = Config {
            hosts: listed.0.hosts.clone(),
            session_timeout: self.session_timeout,
            auth: self.options.auth.iter().cloned().chain(own).collect(),
            reply_limit: LONGEST_REPLY,
            seed: (self.environment.random() >> 64) as u64,
            unsupported: self.unsupported.clone(),
        };
        let (connection, driver) = Connection::new(self.network.clone(), config);
        connection.limit_requests(self.options.jute_maxbuffer);
        tokio::spawn(self.environment.task(driver.boxed()));
        let connection = Arc::new(connection);
        listed.1 = Arc::downgrade(&connection);
        connection
    }
}

/// A connection whose session is not open yet. If it is dropped, the obstacles are noted.
struct Opening<'a>(&'a ZookeeperConnector, &'a Connection);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        *lock(&self.0.obstacles) = self.1.obstacles();
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

impl Connector for ZookeeperConnector {
    fn connect(&self) -> BoxFuture<'_, Result<ServerSession, ServerError>> {
        self.open_identified().boxed()
    }

    fn set_hosts(&self, connect_string: &str) -> Result<(), InvalidInput> {
        let new = ConnectString::new(connect_string)?;
        self.options.check_hosts(&new)?;
        let mut listed = lock(&self.listed);
        let chroot = &listed.0.chroot;
        if new.chroot != *chroot {
            let problem = format!(
                "has the chroot {}, and this session has {chroot}: open another session",
                new.chroot
            );
            return Err(InvalidInput::new("connect string", new.text, problem));
        }
        let hosts = new.hosts.clone();
        listed.0 = new;
        let session = listed.1.upgrade();
        drop(listed);
        if let Some(session) = session {
            session.set_hosts(&hosts);
        }
        Ok(())
    }

    fn obstacle(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        let obstacles = lock(&self.obstacles);
        let mut causes = obstacles.iter().map(|obstacle| &obstacle.cause);
        let refused = causes.find(|it| matches!(it, DisconnectReason::AuthenticationFailed(_)));
        let over = ServerError::SessionOver(SessionEnd::AuthenticationFailed);
        let (text, source) = match refused {
            // A server has answered for all of them.
            Some(refused) => (refused.to_string(), Some(over)),
            None => (
                Obstacle::in_words(&obstacles, self.options.is_encrypted),
                None,
            ),
        };
        (!obstacles.is_empty()).then(|| Arc::new(Unreachable { text, source }) as _)
    }
}
