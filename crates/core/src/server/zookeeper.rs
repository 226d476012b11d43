//! The ensemble over the library's own connection.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::watch;
use zookeeper_recipes_connection::{
    Config, Connection, DisconnectReason, Host, Network, Obstacle, State, UnsupportedRequests,
    WatchedRead, tokio_is_paused,
};
use zookeeper_recipes_protocol::{FrameError, RequestBody};

use crate::invalid_input::InvalidInput;
use crate::server::connect_string::ConnectString;
use crate::server::ensemble::{
    AuthId, Connector, Ensemble, EnsembleFacts, OpenedSession, RawReply, RawSession, SessionId,
};
use crate::server::environment::{Environment, ThisMachine};
use crate::server::error::{ServerError, SessionEnd};
use crate::server::listed_hosts::ListedHosts;
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
        ZookeeperEnsemble::within(Arc::new(ThisMachine), connect_string)
    }

    /// The ensemble at these hosts, in a simulated world.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the connect string is not well formed.
    // Hidden: only a simulation replaces the network, the clock and the random numbers.
    #[doc(hidden)]
    pub fn within(
        environment: Arc<dyn Environment>,
        connect_string: &str,
    ) -> Result<ZookeeperEnsemble, InvalidInput> {
        let connect_string = ConnectString::new(connect_string)?;
        let hosts = connect_string.hosts.iter();
        let facts = EnsembleFacts {
            address: connect_string.text.clone(),
            servers: hosts.map(|host| host.to_string().to_lowercase()).collect(),
            chroot: connect_string.chroot.clone(),
            session_timeout: Some(environment.session_timeout()),
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
    hosts: ListedHosts,
    environment: Arc<dyn Environment>,
    network: Arc<dyn Network>,
    /// Why no host could be reached when the last session was opened.
    obstacle: Mutex<Option<Unreachable>>,
    session_timeout: Duration,
    options: ConnectOptions,
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
    async fn open_identified(&self) -> Result<OpenedSession, ServerError> {
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
    async fn open(&self, identified: bool) -> Result<OpenedSession, ServerError> {
        let [user, password] = &self.own_credentials;
        let mut auth = self.options.auth.clone();
        if identified {
            let credentials = format!("{user}:{password}").into_bytes();
            auth.push(("digest".to_owned(), credentials));
        }
        let config = |hosts| Config {
            hosts,
            session_timeout: self.session_timeout,
            auth,
            reply_limit: LONGEST_REPLY,
            seed: (self.environment.random() >> 64) as u64,
            unsupported: self.unsupported.clone(),
        };
        let connection = self.hosts.open(|hosts| {
            let (connection, driver) = Connection::new(self.network.clone(), config(hosts));
            connection.limit_requests(self.options.jute_maxbuffer);
            tokio::spawn(self.environment.task(driver.boxed()));
            connection
        });
        let mut opening = Opening {
            connector: self,
            connection: Some(connection),
        };
        let (session_id, timeout) = opening.session().await?;
        let connection = opening.connection.take().ok_or(CLOSED)?;
        let chroot = self.hosts.connect_string().chroot;
        Ok(OpenedSession {
            opened_over: connection.opened_over(),
            raw: connection,
            id: SessionId(session_id),
            timeout,
            own_identity: identified.then(|| AuthId::digest(user, password)),
            is_anonymous: self.options.is_anonymous(),
            limit: self.options.request_limit(&chroot),
            left_open: None,
        })
    }

    fn unreachable(&self, obstacles: Vec<Obstacle>) -> Unreachable {
        Unreachable {
            obstacles,
            is_encrypted: self.options.is_encrypted(),
        }
    }
}

const CLOSED: ServerError = ServerError::SessionOver(SessionEnd::Closed);

/// A connection whose session is not open yet. If dropped, the obstacles are noted.
struct Opening<'a> {
    connector: &'a ZookeeperConnector,
    connection: Option<Arc<Connection>>,
}

impl Opening<'_> {
    /// Waits for the session, and returns its id and its timeout.
    async fn session(&mut self) -> Result<(i64, Duration), ServerError> {
        let Some(connection) = &self.connection else {
            return Err(CLOSED);
        };
        let mut states = connection.states();
        loop {
            let state = *states.borrow_and_update();
            match state {
                State::Connected {
                    session_id,
                    timeout,
                    ..
                } => return Ok((session_id, timeout)),
                State::Ended(end) => return Err(ServerError::SessionOver(end)),
                State::Disconnected { .. } => {}
            }
            if states.changed().await.is_err() {
                return Err(CLOSED);
            }
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            let unreachable = self.connector.unreachable(connection.obstacles());
            *lock(&self.connector.obstacle) = Some(unreachable);
        }
    }
}

/// The most addresses of one name that an error lists with one cause.
const MAX_ADDRESSES: usize = 4;

/// Why each host cannot be reached.
#[derive(Clone, Debug)]
struct Unreachable {
    obstacles: Vec<Obstacle>,
    is_encrypted: bool,
}

impl Unreachable {
    /// The refusal of credentials, if a server has refused some.
    fn refused_credentials(&self) -> Option<&DisconnectReason> {
        let mut causes = self.obstacles.iter().map(|obstacle| &obstacle.cause);
        causes.find(|cause| matches!(cause, DisconnectReason::AuthenticationFailed(_)))
    }

    /// What stands in the way, in words.
    fn text(&self, obstacle: &DisconnectReason) -> String {
        match obstacle {
            DisconnectReason::NoAddress(_)
            | DisconnectReason::NotLookedUp(_)
            | DisconnectReason::Io(_)
            | DisconnectReason::NotConnected(_)
            | DisconnectReason::Tls(_) => obstacle.to_string(),
            obstacle => {
                let hint = self.hint(obstacle);
                format!("something listens, but it opened no session: {obstacle}{hint}")
            }
        }
    }

    /// What the user should look at, if a server answers so without a session.
    fn hint(&self, obstacle: &DisconnectReason) -> &'static str {
        /// The first bytes of an alert of TLS, read as the length of a frame.
        const ALERT: RangeInclusive<usize> = 0x1503_0000..=0x1503_ffff;
        match obstacle {
            DisconnectReason::ClosedUnheard if self.is_encrypted => {
                ". Likely causes: maxClientCnxns of the server is reached for the address of this \
                 client (60 connections by default), or the server has no quorum"
            }
            DisconnectReason::ClosedUnheard => {
                ". Likely causes: maxClientCnxns of the server is reached for the address of this \
                 client (60 connections by default), the server has no quorum, or it expects TLS at \
                 this port"
            }
            DisconnectReason::Frame(FrameError::TooLong { length, .. })
                if ALERT.contains(length) && !self.is_encrypted =>
            {
                ": does this port expect TLS?"
            }
            _ => "",
        }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A server has answered for all of them.
        if let Some(refused) = self.refused_credentials() {
            return write!(formatter, "{refused}");
        }
        let mut parts: Vec<(&Host, String, Vec<IpAddr>)> = Vec::new();
        for Obstacle {
            host,
            address,
            cause,
        } in &self.obstacles
        {
            let (text, address) = (self.text(cause), address.map(|address| address.ip()));
            match parts
                .iter_mut()
                .find(|part| part.0 == host && part.1 == text)
            {
                Some((_, _, addresses)) => addresses.extend(address),
                None => parts.push((host, text, address.into_iter().collect())),
            }
        }
        for (place, (host, text, addresses)) in parts.iter().enumerate() {
            let separator = if place > 0 { "; " } else { "" };
            write!(formatter, "{separator}{}: {text}", shown(host, addresses))?;
        }
        Ok(())
    }
}

/// A host, and the addresses of its name that were tried.
fn shown(host: &Host, addresses: &[IpAddr]) -> String {
    if addresses.is_empty() {
        return host.name.clone();
    }
    if host.address().is_some() {
        return host.to_string();
    }
    let listed = addresses.iter().take(MAX_ADDRESSES);
    let listed: Vec<String> = listed.map(IpAddr::to_string).collect();
    let others = match addresses.len() - listed.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    format!("{host} ({}{others})", listed.join(", "))
}

/// Its text has the errors of the hosts, so they are not its source.
impl std::error::Error for Unreachable {
    /// The end of the session, if a server has refused the credentials.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        static OVER: ServerError = ServerError::SessionOver(SessionEnd::AuthenticationFailed);
        self.refused_credentials().map(|_| &OVER as _)
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
        let asked = options.session_timeout;
        options.check_hosts(&self.connect_string)?;
        Ok(Arc::new(ZookeeperConnector {
            hosts: ListedHosts::new(self.connect_string.clone()),
            network: environment.network(options)?,
            options: options.clone(),
            obstacle: Mutex::default(),
            session_timeout: asked.unwrap_or_else(|| environment.session_timeout()),
            own_credentials: [environment.random(), environment.random()]
                .map(|number| format!("{number:032x}")),
            environment,
            unsupported: UnsupportedRequests::default(),
            identity_refused: AtomicBool::new(false),
        }))
    }
}

impl RawSession for Connection {
    fn send(&self, request: RequestBody) -> RawReply {
        let (kind, read) = match &request {
            RequestBody::GetData(read) if read.watch => (WatchedRead::Data, read),
            RequestBody::Exists(read) if read.watch => (WatchedRead::Exists, read),
            RequestBody::GetChildren(read) if read.watch => (WatchedRead::Children, read),
            _ => return RawReply::OfConnection(self.request(request)),
        };
        let reply = self.watch(kind, &read.path);
        RawReply::new(async move {
            let (answer, watch) = reply.await?;
            Ok((answer, watch.map(FutureExt::boxed)))
        })
    }

    fn states(&self) -> watch::Receiver<State> {
        Connection::states(self)
    }

    fn leave_server(&self) {
        Connection::leave_server(self);
    }

    fn close(&self) {
        self.begin_close();
    }
}

impl fmt::Debug for ZookeeperConnector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ZookeeperConnector")
            .field("connect_string", &self.hosts.connect_string().text)
            .finish_non_exhaustive()
    }
}

impl Connector for ZookeeperConnector {
    fn connect(&self) -> BoxFuture<'_, Result<OpenedSession, ServerError>> {
        self.open_identified().boxed()
    }

    fn set_hosts(&self, connect_string: &str) -> Result<(), InvalidInput> {
        let new = ConnectString::new(connect_string)?;
        let chroot = self.hosts.connect_string().chroot;
        if new.chroot != chroot {
            let problem = format!(
                "has the chroot {}, and this session has {chroot}: open another session",
                new.chroot
            );
            return Err(InvalidInput::new("connect string", new.text, problem));
        }
        self.options.check_hosts(&new)?;
        self.hosts.replace(new);
        Ok(())
    }

    fn obstacle(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        let found = lock(&self.obstacle).clone();
        found
            .filter(|found| !found.obstacles.is_empty())
            .map(|found| Arc::new(found) as _)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/zookeeper.rs"]
mod tests;
