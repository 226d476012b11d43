//! The seam over the crate `zookeeper-client`.
//!
//! The crate's facts that matter here: its methods send at the call; most broken connections
//! arrive as errors of other kinds than connection loss, so that errors are matched by class and
//! everything that is no definite answer counts as unknown; the session closes when the last
//! `Client` is dropped.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use zookeeper_client as client;

use crate::invalid_input::InvalidInput;
use crate::server::connect_string::ConnectString;
use crate::server::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Created, Ensemble, Event, Node, Operation, Outcome,
    Reply, ServerSession, SessionId, Stat, TransactionError, Watch,
};
use crate::server::error::SessionEnd;
use crate::server::error::{Refusal, ServerError};
use crate::server::options::ConnectOptions;
use crate::server::own_identity;
use crate::server::own_identity::OwnIdentity;
use crate::server::reach::{Unreachable, looked_at};
use crate::sync::lock;

/// A real ensemble, reached over the network.
pub struct ZookeeperEnsemble {
    connect_string: ConnectString,
    /// What was seen of the hosts while the last session was being opened.
    found: Mutex<Option<Unreachable>>,
    options: ConnectOptions,
    own_identity: OwnIdentity,
    /// Whether a server has refused the identity of one's own.
    identity_refused: AtomicBool,
}

impl ZookeeperEnsemble {
    /// Takes note of where the ensemble is; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the connect string has something in it that is no host, no port or no
    /// chroot.
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

    /// Opens a session, with an identity of its own if the server takes that.
    async fn open_as_possible(&self) -> Result<ClientSession, ServerError> {
        let identified = !self.identity_refused.load(Ordering::Relaxed);
        match self.open(identified).await {
            // A server may be told not to know the scheme. It is no reason to do without it.
            Err(client::Error::AuthFailed) if identified => {
                let session = self.open(false).await.map_err(classify)?;
                self.identity_refused.store(true, Ordering::Relaxed);
                Ok(session)
            }
            opened => opened.map_err(classify),
        }
    }

    /// Opens a session, with the identity of one's own or without.
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
        now()
    }

    fn address(&self) -> String {
        self.connect_string.text.clone()
    }

    fn chroot(&self) -> &str {
        &self.connect_string.chroot
    }

    fn obstacle(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        let found = lock(&self.found).clone();
        found.map(|found| Arc::new(found) as _)
    }
}

/// A client that somebody else has connected: one session, and never another.
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
        now()
    }

    fn address(&self) -> String {
        "a client that was connected elsewhere".to_owned()
    }

    fn chroot(&self) -> &str {
        &self.chroot
    }
}

/// `CLOCK_MONOTONIC` stands still while the machine sleeps; the server's clock does not.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn now() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

struct ClientSession {
    client: client::Client,
    /// Not for somebody else's client, whose session would end should the server refuse it.
    own_identity: Option<AuthId>,
    /// Whether it has no identity but its own, so that "whoever created it" means nobody.
    is_anonymous: bool,
}

impl ClientSession {
    /// Refuses, as the server would a session without an identity of its own, to keep a znode for
    /// "whoever created it": nobody else could ever show that identity.
    fn check_acl(&self, acl: &[Acl]) -> Result<(), ServerError> {
        let by_creator = acl
            .iter()
            .any(|entry| entry.scheme() == AuthId::authed().scheme());
        if self.is_anonymous && by_creator {
            return Err(ServerError::Refused(Refusal::InvalidAcl));
        }
        Ok(())
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientSession({})", self.id())
    }
}

impl ServerSession for ClientSession {
    fn id(&self) -> SessionId {
        SessionId(self.client.session_id().0)
    }

    fn timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    fn state(&self) -> ConnectionState {
        connection_state(self.client.state())
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        let mut watcher = self.client.state_watcher();
        let first = connection_state(watcher.state());
        stream::unfold(Some((Some(first), watcher)), |rest| async move {
            let (next, mut watcher) = rest?;
            let state = match next {
                Some(state) => state,
                None => connection_state(watcher.changed().await),
            };
            // After its end the watcher would wait for ever.
            let ended = matches!(state, ConnectionState::Ended(_));
            Some((state, (!ended).then_some((None, watcher))))
        })
        .boxed()
    }

    fn disconnected(&self) -> BoxFuture<'static, ()> {
        let mut watcher = self.client.state_watcher();
        let state = connection_state(watcher.state());
        async move {
            if state == ConnectionState::Connected {
                watcher.changed().await;
            }
        }
        .boxed()
    }

    fn own_identity(&self) -> Option<AuthId> {
        self.own_identity.clone()
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        if let Err(error) = self.check_acl(acl) {
            return std::future::ready(Err(error)).boxed();
        }
        let reply = self.client.create(path, data, &mode.with_acls(acl.into()));
        async move {
            let (stat, sequence) = understood(reply).await.map_err(classify)?;
            let path = match sequence.into_i64() {
                number if number < 0 && !is_sequential(mode) => path.to_owned(),
                _ => format!("{path}{sequence}"),
            };
            Ok(Created { path, stat })
        }
        .boxed()
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        answer(self.client.delete(path, None))
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        answer(self.client.list_children(path))
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        let reply = self.client.list_and_watch_children(path);
        async move {
            let (children, watcher) = understood(reply).await.map_err(classify)?;
            Ok((children, watch(watcher)))
        }
        .boxed()
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        answer(self.client.get_data(path))
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        let reply = self.client.get_and_watch_data(path);
        async move {
            let (data, stat, watcher) = understood(reply).await.map_err(classify)?;
            Ok((data, stat, watch(watcher)))
        }
        .boxed()
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        let reply = self.client.check_and_watch_stat(path);
        async move {
            let (stat, watcher) = understood(reply).await.map_err(classify)?;
            Ok((stat, watch(watcher)))
        }
        .boxed()
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        let mut writer = self.client.new_multi_writer();
        for (index, operation) in operations.iter().enumerate() {
            let added = match operation {
                Operation::Check { path, version } => {
                    writer.add_check_version(path, version.unwrap_or(-1))
                }
                Operation::Create {
                    path,
                    data,
                    mode,
                    acl,
                } => {
                    if let Err(error) = self.check_acl(acl) {
                        let operation = Some(index);
                        return std::future::ready(Err(TransactionError { operation, error }))
                            .boxed();
                    }
                    writer.add_create(path, data, &mode.with_acls(acl.as_slice().into()))
                }
                Operation::SetData {
                    path,
                    data,
                    version,
                } => writer.add_set_data(path, data, *version),
                Operation::Delete { path, version } => writer.add_delete(path, *version),
            };
            if let Err(error) = added {
                let error = classify(error);
                return std::future::ready(Err(TransactionError {
                    operation: Some(index),
                    error,
                }))
                .boxed();
            }
        }
        let reply = writer.commit();
        async move {
            let results = understood(reply).await.map_err(|error| match error {
                client::MultiWriteError::RequestFailed { source } => TransactionError {
                    operation: None,
                    error: classify(source),
                },
                client::MultiWriteError::OperationFailed { index, source } => TransactionError {
                    operation: Some(index),
                    error: classify(source),
                },
            })?;
            results
                .into_iter()
                .map(|result| match result {
                    client::MultiWriteResult::Check => Ok(Outcome::Checked),
                    client::MultiWriteResult::Delete => Ok(Outcome::Deleted),
                    client::MultiWriteResult::Create { path, stat } => {
                        Ok(Outcome::Created(Created { path, stat }))
                    }
                    client::MultiWriteResult::SetData { stat } => Ok(Outcome::DataSet(stat)),
                    other => Err(TransactionError {
                        operation: None,
                        error: ServerError::outcome_unknown(format!("unheard-of: {other:?}")),
                    }),
                })
                .collect()
        }
        .boxed()
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        let mut replies = Vec::new();
        for paths in in_requests(paths) {
            let mut reader = self.client.new_multi_reader();
            for path in paths {
                if let Err(error) = reader.add_get_data(path) {
                    return std::future::ready(Err(classify(error))).boxed();
                }
            }
            replies.push(reader.commit());
        }
        async move {
            let mut nodes = Vec::new();
            for reply in replies {
                let results = understood(reply).await.map_err(classify)?;
                for result in results {
                    nodes.push(match result {
                        client::MultiReadResult::Data { data, stat } => Some((data, stat)),
                        client::MultiReadResult::Error {
                            err: client::Error::NoNode,
                        } => None,
                        client::MultiReadResult::Error { err } => return Err(classify(err)),
                        other => {
                            let heard = format!("unheard-of: {other:?}");
                            return Err(ServerError::outcome_unknown(heard));
                        }
                    });
                }
            }
            Ok(nodes)
        }
        .boxed()
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        answer(self.client.sync(path))
    }
}

fn is_sequential(mode: CreateMode) -> bool {
    matches!(
        mode,
        CreateMode::PersistentSequential | CreateMode::EphemeralSequential
    )
}

fn answer<'a, T: 'a>(
    reply: impl Future<Output = Result<T, client::Error>> + Send + 'a,
) -> Reply<'a, T> {
    understood(reply)
        .map(|result| result.map_err(classify))
        .boxed()
}

/// Splits what is to be read into requests that a server accepts, of which each is as long as its
/// paths: it ends the connection that a longer one comes on (`jute.maxbuffer`, by default 1 MiB).
fn in_requests(mut paths: &[String]) -> impl Iterator<Item = &[String]> {
    const MOST_BYTES: usize = 512 * 1024;
    /// What a request has besides each path: the path's length, and the head of the operation.
    const HEAD: usize = 16;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |path: &&String| {
            bytes += path.len() + HEAD;
            bytes <= MOST_BYTES
        };
        // At least one: no path is so long that the server would refuse it alone.
        let number = paths
            .iter()
            .take_while(fits)
            .count()
            .max(1)
            .min(paths.len());
        let (request, rest) = paths.split_at(number);
        paths = rest;
        (number > 0).then_some(request)
    })
}

/// The client panics at replies that are shorter than they should be; whatever such a reply was to
/// say, it is not known.
async fn understood<T, E: From<client::Error>>(
    reply: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let reply = AssertUnwindSafe(reply).catch_unwind().await;
    reply.unwrap_or_else(|_| {
        let problem = "a reply that makes no sense".to_owned();
        Err(client::Error::UnexpectedError(problem).into())
    })
}

fn watch(watcher: client::OneshotWatcher) -> Watch {
    async move {
        // The client panics here when the runtime that it was connected in has gone down.
        let changed = AssertUnwindSafe(watcher.changed()).catch_unwind();
        let Ok(event) = changed.await else {
            return Event::SessionEnded(SessionEnd::Closed);
        };
        match event.event_type {
            client::EventType::NodeCreated => Event::Created,
            client::EventType::NodeDeleted => Event::Deleted,
            client::EventType::NodeDataChanged => Event::DataChanged,
            client::EventType::NodeChildrenChanged => Event::ChildrenChanged,
            client::EventType::Session => Event::SessionEnded(session_end(event.session_state)),
        }
    }
    .boxed()
}

fn session_end(state: client::SessionState) -> SessionEnd {
    match state {
        client::SessionState::Closed => SessionEnd::Closed,
        client::SessionState::AuthFailed => SessionEnd::AuthenticationFailed,
        _ => SessionEnd::Expired,
    }
}

fn connection_state(state: client::SessionState) -> ConnectionState {
    match state {
        client::SessionState::SyncConnected => ConnectionState::Connected,
        client::SessionState::Disconnected | client::SessionState::ConnectedReadOnly => {
            ConnectionState::Disconnected
        }
        over => ConnectionState::Ended(session_end(over)),
    }
}

/// Sorts the client's errors: a definite no, a session that is over, or an unknown outcome.
fn classify(error: client::Error) -> ServerError {
    use client::Error;
    let refusal = match error {
        Error::NoNode => Refusal::NoNode,
        Error::NodeExists => Refusal::NodeExists,
        Error::BadVersion => Refusal::BadVersion,
        Error::NotEmpty => Refusal::NotEmpty,
        Error::NoAuth => Refusal::NoAuth,
        Error::InvalidAcl => Refusal::InvalidAcl,
        Error::BadArguments(what) => Refusal::BadArguments((*what).to_owned()),
        Error::NoChildrenForEphemerals => Refusal::NoChildrenForEphemerals,
        Error::QuotaExceeded => Refusal::QuotaExceeded,
        Error::Throttled => Refusal::Throttled,
        Error::Unimplemented => Refusal::Unimplemented,
        Error::NotReadOnly => Refusal::ReadOnly,
        Error::NoWatcher | Error::ReconfigDisabled | Error::UnexpectedErrorCode(_) => {
            Refusal::Other(error.to_string())
        }
        Error::SessionExpired => return ServerError::SessionOver(SessionEnd::Expired),
        Error::AuthFailed => return ServerError::SessionOver(SessionEnd::AuthenticationFailed),
        Error::ClientClosed => return ServerError::SessionOver(SessionEnd::Closed),
        other => return ServerError::outcome_unknown(other),
    };
    ServerError::Refused(refusal)
}
