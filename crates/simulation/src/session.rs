//! The seam's two traits, on top of a simulation.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::{oneshot, watch};
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Created, Ensemble, Event, Operation, Outcome, Reply,
    ServerSession, SessionEnd, SessionId, Stat, TransactionError, Watch,
};
use zookeeper_recipes_core::{Identity, Refusal, ServerError};

use super::client::Settled;
use super::request::{Answer, Request, outcome_unknown, refused};
use super::tasks::{self, Kind};
use super::world::{ClientId, Clock, ProcessId, Shared};

/// The ensemble, as one process reaches it.
#[derive(Debug)]
pub(super) struct SimulatedEnsemble {
    pub(super) shared: Arc<Shared>,
    pub(super) process: ProcessId,
    pub(super) clock: Clock,
    pub(super) name: String,
    pub(super) chroot: String,
    pub(super) identities: Vec<AuthId>,
}

impl Ensemble for SimulatedEnsemble {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        let mut identities = vec![AuthId::new("ip", "127.0.0.1")];
        identities.extend(self.identities.iter().cloned());
        let (own_identity, client, opened, states) = self.shared.with(|world| {
            let secret = format!("{:032x}:{:032x}", world.rng.u128(..), world.rng.u128(..));
            let own_identity = AuthId::new("digest", &secret);
            identities.push(own_identity.clone());
            let (client, opened, states) = world.open_client(self.process, identities);
            (own_identity, client, opened, states)
        });
        let mut opening = Opening {
            shared: Arc::clone(&self.shared),
            client: Some(client),
        };
        async move {
            opened
                .await
                .unwrap_or(Err(ServerError::SessionOver(SessionEnd::Closed)))?;
            opening.is_done();
            let (id, timeout) = self.shared.with(|world| {
                let client = world.clients.get(&client);
                client.map_or((SessionId(0), Duration::ZERO), |client| {
                    (SessionId(client.session), client.timeout)
                })
            });
            let session = SimulatedSession {
                shared: Arc::clone(&self.shared),
                client,
                id,
                timeout,
                states,
                own_identity,
                is_anonymous: self.identities.is_empty(),
                chroot: if self.chroot == "/" {
                    String::new()
                } else {
                    self.chroot.clone()
                },
            };
            Ok(Arc::new(session) as Arc<dyn ServerSession>)
        }
        .boxed()
    }

    fn now(&self) -> Duration {
        self.clock.at(self.shared.now())
    }

    fn address(&self) -> String {
        format!("simulation (from {})", self.name)
    }

    fn chroot(&self) -> &str {
        &self.chroot
    }

    fn identity(&self) -> Identity {
        let bits = self.shared.with(|world| world.rng.u128(..));
        Identity::from_random_bits(bits)
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.shared);
        let process = self.process;
        async move { tasks::run(&shared, process, Kind::Background, work).await }.boxed()
    }
}

/// A session that is being opened: left to its timeout where nobody waits for it any more.
struct Opening {
    shared: Arc<Shared>,
    client: Option<ClientId>,
}

impl Opening {
    fn is_done(&mut self) {
        self.client = None;
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(client) = self.client {
            self.shared.with(|world| world.abandon(client));
        }
    }
}

struct SimulatedSession {
    shared: Arc<Shared>,
    client: ClientId,
    id: SessionId,
    timeout: Duration,
    states: watch::Receiver<ConnectionState>,
    own_identity: AuthId,
    /// Whether it has no identity but its own, so that nobody else could show it.
    is_anonymous: bool,
    /// Empty where there is none.
    chroot: String,
}

impl fmt::Debug for SimulatedSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SimulatedSession")
            .field("id", &self.id)
            .field("state", &*self.states.borrow())
            .finish_non_exhaustive()
    }
}

impl Drop for SimulatedSession {
    fn drop(&mut self) {
        self.shared.with(|world| world.close(self.client));
    }
}

type Settling = BoxFuture<'static, Result<Settled, TransactionError>>;

impl SimulatedSession {
    fn ask(&self, request: Request) -> Settling {
        let (responder, receiver) = oneshot::channel();
        self.shared
            .with(|world| world.ask(self.client, request, responder));
        async move {
            receiver
                .await
                .unwrap_or_else(|_| Err(outcome_unknown("the simulation has ended")))
        }
        .boxed()
    }

    /// Asks for something about one path; a path that no server would take is not sent.
    fn ask_at(
        &self,
        path: &str,
        sequential: bool,
        request: impl FnOnce(String) -> Request,
    ) -> Settling {
        match self.server_path(path, sequential) {
            Ok(path) => self.ask(request(path)),
            Err(refusal) => futures_util::future::ready(Err(refused(None, refusal))).boxed(),
        }
    }

    /// The path on the server.
    fn server_path(&self, path: &str, sequential: bool) -> Result<String, Refusal> {
        check_path(path, sequential)?;
        Ok(match (self.chroot.as_str(), path) {
            ("", path) => path.to_owned(),
            (chroot, "/") => chroot.to_owned(),
            (chroot, path) => format!("{chroot}{path}"),
        })
    }

    fn is_valid(&self, acl: &[Acl]) -> bool {
        let by_creator = |entry: &Acl| entry.scheme() == AuthId::authed().scheme();
        let for_nobody = acl.is_empty() || (self.is_anonymous && acl.iter().any(by_creator));
        !for_nobody
    }

    fn client_path(&self, created: Created) -> Created {
        strip(&self.chroot, created)
    }

    fn prepare(&self, operation: &Operation) -> Result<Operation, Refusal> {
        Ok(match operation {
            Operation::Delete { path, .. } if path == "/" => return Err(no_root("delete")),
            Operation::Check { path, version } => Operation::Check {
                path: self.server_path(path, false)?,
                version: *version,
            },
            Operation::Create {
                path,
                data,
                mode,
                acl,
            } => {
                if !self.is_valid(acl) {
                    return Err(Refusal::InvalidAcl);
                }
                let path = self.server_path(path, is_sequential(*mode))?;
                Operation::Create {
                    path,
                    data: data.clone(),
                    mode: *mode,
                    acl: acl.clone(),
                }
            }
            Operation::SetData {
                path,
                data,
                version,
            } => Operation::SetData {
                path: self.server_path(path, false)?,
                data: data.clone(),
                version: *version,
            },
            Operation::Delete { path, version } => Operation::Delete {
                path: self.server_path(path, false)?,
                version: *version,
            },
        })
    }
}

impl ServerSession for SimulatedSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn state(&self) -> ConnectionState {
        *self.states.borrow()
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        let receiver = self.states.clone();
        stream::unfold(
            (receiver, true, false),
            |(mut receiver, first, ended)| async move {
                if ended || (!first && receiver.changed().await.is_err()) {
                    return None;
                }
                let state = *receiver.borrow_and_update();
                let ended = matches!(state, ConnectionState::Ended(_));
                Some((state, (receiver, false, ended)))
            },
        )
        .boxed()
    }

    fn disconnected(&self) -> BoxFuture<'static, ()> {
        let mut states = self.states.clone();
        let state = *states.borrow_and_update();
        async move {
            if state == ConnectionState::Connected {
                // An error means that the simulation has ended.
                let _ = states.changed().await;
            }
        }
        .boxed()
    }

    fn own_identity(&self) -> Option<AuthId> {
        Some(self.own_identity.clone())
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        if !self.is_valid(acl) {
            return ready(Refusal::InvalidAcl);
        }
        if path == "/" {
            return ready(no_root("create"));
        }
        let (data, acl) = (data.to_vec(), acl.to_vec());
        let settling = self.ask_at(path, is_sequential(mode), |path| Request::Create {
            path,
            data,
            mode,
            acl,
        });
        async move {
            match settle(settling).await?.answer {
                Answer::Created(created) => Ok(self.client_path(created)),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        if path == "/" {
            return ready(no_root("delete"));
        }
        let settling = self.ask_at(path, false, |path| Request::Delete { path });
        async move { settle(settling).await.map(|_| ()) }.boxed()
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        let settling = self.ask_at(path, false, |path| Request::List { path, watch: false });
        async move {
            match settle(settling).await?.answer {
                Answer::Children(names) => Ok(names),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        let settling = self.ask_at(path, false, |path| Request::List { path, watch: true });
        async move {
            match settle(settling).await? {
                Settled {
                    answer: Answer::Children(names),
                    watch: Some(watch),
                } => Ok((names, watch.boxed())),
                other => Err(unexpected(&other.answer)),
            }
        }
        .boxed()
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat)> {
        let settling = self.ask_at(path, false, |path| Request::Get { path, watch: false });
        async move {
            match settle(settling).await?.answer {
                Answer::Data(data, stat) => Ok((data, stat)),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        let settling = self.ask_at(path, false, |path| Request::Get { path, watch: true });
        async move {
            match settle(settling).await? {
                Settled {
                    answer: Answer::Data(data, stat),
                    watch: Some(watch),
                } => Ok((data, stat, watch.boxed())),
                other => Err(unexpected(&other.answer)),
            }
        }
        .boxed()
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        let settling = self.ask_at(path, false, |path| Request::Exists { path });
        async move {
            match settle(settling).await? {
                Settled {
                    answer: Answer::Exists(stat),
                    watch: Some(watch),
                } => Ok((stat, watch.boxed())),
                other => Err(unexpected(&other.answer)),
            }
        }
        .boxed()
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        let mut prepared = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            match self.prepare(operation) {
                Ok(operation) => prepared.push(operation),
                Err(refusal) => {
                    let error = refused(Some(index), refusal);
                    return futures_util::future::ready(Err(error)).boxed();
                }
            }
        }
        if prepared.is_empty() {
            return futures_util::future::ready(Ok(Vec::new())).boxed();
        }
        let settling = self.ask(Request::Transact(prepared));
        async move {
            match settling.await?.answer {
                Answer::Outcomes(outcomes) => Ok(outcomes
                    .into_iter()
                    .map(|outcome| match outcome {
                        Outcome::Created(created) => Outcome::Created(self.client_path(created)),
                        other => other,
                    })
                    .collect()),
                other => Err(TransactionError {
                    operation: None,
                    error: unexpected(&other),
                }),
            }
        }
        .boxed()
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<(Vec<u8>, Stat)>>> {
        let mut prepared = Vec::new();
        for path in paths {
            match self.server_path(path, false) {
                Ok(path) => prepared.push(path),
                Err(refusal) => return ready(refusal),
            }
        }
        if prepared.is_empty() {
            return futures_util::future::ready(Ok(Vec::new())).boxed();
        }
        let settling = self.ask(Request::GetEach(prepared));
        async move {
            match settle(settling).await?.answer {
                Answer::Each(nodes) => Ok(nodes),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        let settling = self.ask_at(path, false, |path| Request::Sync { path });
        async move { settle(settling).await.map(|_| ()) }.boxed()
    }
}

async fn settle(settling: Settling) -> Result<Settled, ServerError> {
    settling.await.map_err(|failed| failed.error)
}

fn ready<'a, T: Send + 'a>(refusal: Refusal) -> Reply<'a, T> {
    futures_util::future::ready(Err(ServerError::Refused(refusal))).boxed()
}

fn unexpected(answer: &Answer) -> ServerError {
    ServerError::outcome_unknown(format!("an unexpected answer: {}", answer.text()))
}

fn no_root(what: &str) -> Refusal {
    Refusal::BadArguments(format!("can not {what} root node"))
}

fn is_sequential(mode: CreateMode) -> bool {
    matches!(
        mode,
        CreateMode::PersistentSequential | CreateMode::EphemeralSequential
    )
}

fn strip(chroot: &str, created: Created) -> Created {
    match created.path.strip_prefix(chroot) {
        Some(path) if !chroot.is_empty() => Created {
            path: path.to_owned(),
            ..created
        },
        _ => created,
    }
}

/// What the client refuses to send, in its words.
fn check_path(path: &str, sequential: bool) -> Result<(), Refusal> {
    let problem = if path.is_empty() {
        "path cannot be empty"
    } else if !path.starts_with('/') {
        "path must start with '/'"
    } else if path == "/" {
        return Ok(());
    } else if path.contains("//") {
        "empty node is not allowed in path"
    } else if path.ends_with('/') && !sequential {
        "path must not end with '/'"
    } else if path[1..].split('/').any(|segment| segment == "." || segment == "..") {
        "relative path is not allowed"
    } else if path.chars().any(|character| {
        matches!(character,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
    }) {
        "unsupported characters in path"
    } else {
        return Ok(());
    };
    Err(Refusal::BadArguments(problem.to_owned()))
}

/// A watch that stands on a simulated server, or has been triggered.
#[derive(Debug)]
pub(super) struct SimulatedWatch {
    shared: Weak<Shared>,
    client: ClientId,
    path: String,
    id: u64,
    event: oneshot::Receiver<Event>,
    told: bool,
}

impl SimulatedWatch {
    pub(super) fn new(
        shared: Weak<Shared>,
        client: ClientId,
        path: String,
        id: u64,
        event: oneshot::Receiver<Event>,
    ) -> SimulatedWatch {
        SimulatedWatch {
            shared,
            client,
            path,
            id,
            event,
            told: false,
        }
    }
}

impl Future for SimulatedWatch {
    type Output = Event;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        let event = std::task::ready!(Pin::new(&mut self.event).poll(context));
        self.told = true;
        Poll::Ready(event.unwrap_or(Event::SessionEnded(SessionEnd::Closed)))
    }
}

impl Drop for SimulatedWatch {
    fn drop(&mut self) {
        if self.told {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.with(|world| world.drop_watcher(self.client, &self.path, self.id));
        }
    }
}
