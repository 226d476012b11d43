//! The requests of a session: typed, at paths below its chroot.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use zookeeper_recipes_connection::{Answer, ConnectionState, Exchange, RequestError, TreeEvent};
use zookeeper_recipes_protocol::{
    Acl, AuthId, CreateMode, ErrorCode, OpCode, Operation, Outcome, PathRequest, ReadRequest,
    ReplyBody, RequestBody, Stat,
};

use crate::server::error::{Refusal, ServerError, SessionEnd, if_there};
use crate::server::raw_session::{RawReply, RawSession, SessionId, TreeEvents, Watch};
use crate::server::scope::Scope;

/// One ZooKeeper session that a server has confirmed, with a method for each request of the recipes.
///
/// Each method sends its request when it is called: see [`Pending`]. Dropping the last reference
/// closes the session. [`states`](Self::states) then ends with [`ConnectionState::Ended`].
#[derive(Clone)]
pub struct ServerSession {
    /// What sends its requests.
    pub raw: Arc<dyn RawSession>,
    /// The state of the connection and its changes. The receiver does not keep the session open.
    ///
    /// The state changes before any event or reply that comes over a later connection is ready.
    pub connection_states: watch::Receiver<ConnectionState>,
    /// The id of the session. It is the `ephemeralOwner` of the session's ephemeral znodes.
    pub id: SessionId,
    /// The session timeout that was negotiated with the server.
    pub timeout: Duration,
    /// The number of the connection over which the session was opened.
    ///
    /// If the current connection has another number, the session has reconnected since, perhaps
    /// before its first request. The lease goes by this.
    pub opened_over: Option<u64>,
    /// An identity of this session that no other client can show to the server.
    ///
    /// `None` if the session has no such identity. Its releases are then not marked.
    pub own_identity: Option<AuthId>,
    /// The chroot of the session's paths, and what the servers accept.
    pub scope: Scope,
    /// What sends the last requests of a session that [`close`](RawSession::close) does not end.
    ///
    /// The recipes delete what is left by it, and drop it. `None` if `close` ends the session.
    pub left_open: Option<Arc<dyn RawSession>>,
}

/// The answer to a request that has already been sent. It does not keep the session open.
///
/// # Cancel safety
///
/// If the future is dropped, a write is sent all the same.
pub struct Pending<T, E = ServerError>(Asked<T, E>);

enum Asked<T, E> {
    Sent {
        reply: RawReply,
        read: Read<T, E>,
        /// The bytes of the chroot.
        chroot: usize,
    },
    /// Nothing is sent. The answer, until it is taken.
    Known(Box<Option<Result<T, E>>>),
}

/// Reads the answer to a request, in whose paths the chroot has so many bytes.
type Read<T, E> = fn(usize, Answer, Option<Watch>) -> Result<T, E>;

/// The data and the metadata of a znode.
pub type Node = (Vec<u8>, Stat);

/// A znode that was just created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its path, with the sequence number if the mode is sequential.
    pub path: String,
    /// Its metadata.
    pub stat: Stat,
}

/// The error of a transaction that was refused, or whose outcome is unknown.
#[derive(Clone, Debug)]
pub struct TransactionError {
    /// The index of the operation that the server refused.
    pub operation: Option<usize>,
    /// The error of the request.
    pub error: ServerError,
}

impl From<ServerError> for TransactionError {
    fn from(error: ServerError) -> TransactionError {
        let operation = None;
        TransactionError { operation, error }
    }
}

impl ServerSession {
    /// The id of the session. It is the `ephemeralOwner` of the session's ephemeral znodes.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The last known state of the connection.
    ///
    /// The session is over once a server has shortened its timeout: the lease counts with the longer
    /// one, and the server expires by the shorter.
    pub fn state(&self) -> ConnectionState {
        seen_with(*self.connection_states.borrow(), self.timeout)
    }

    /// A stream of the current state of the connection and each later state.
    ///
    /// States that pass quickly may be skipped, but the last state is never skipped. The stream
    /// does not keep the session open. It ends after [`ConnectionState::Ended`].
    pub fn states(&self) -> BoxStream<'static, ConnectionState> {
        let (states, timeout) = (self.connection_states.clone(), self.timeout);
        stream::unfold((states, None), move |(mut states, seen)| async move {
            let state = next_state(&mut states, timeout, seen).await?;
            Some((state, (states, Some(state))))
        })
        .boxed()
    }

    /// The number of the current connection. Each connection has a larger one. `None` without one.
    ///
    /// This changes before any event or reply that comes over a later connection is ready.
    pub fn connection(&self) -> Option<u64> {
        match *self.connection_states.borrow() {
            ConnectionState::Connected { connection, .. } => Some(connection),
            ConnectionState::Disconnected { .. } | ConnectionState::Ended(_) => None,
        }
    }

    /// True if the events of one [`connection`](Self::connection) come in the order of their
    /// transactions.
    pub fn orders_events(&self) -> bool {
        self.raw.orders_events()
    }

    /// Closes the session, after the requests that were asked before. Later requests are not sent.
    ///
    /// [`states`](Self::states) ends once the server has confirmed the close. A session that is over
    /// stays as it is.
    ///
    /// A session that its user closes stays open at the server. The result is that session then, so
    /// that the caller can delete the znodes that are left.
    pub fn close(&self) -> Option<Arc<ServerSession>> {
        self.raw.close();
        let raw = self.left_open.clone()?;
        let left_open = None;
        Some(Arc::new(ServerSession {
            raw,
            left_open,
            ..self.clone()
        }))
    }

    /// Creates a znode. If the mode is sequential, the server appends ten digits to `path`.
    ///
    /// A mode with a time to live is refused.
    pub fn create<'a>(
        &self,
        path: impl Into<String>,
        data: &[u8],
        mode: CreateMode,
        acl: impl Into<Cow<'a, [Acl]>>,
    ) -> Pending<Created> {
        let create = Operation::create(path, data, mode, acl.into());
        let create = self.scope.with_server_path(create);
        self.ask(create.map(alone), |chroot, answer, _| {
            match accepted(answer)? {
                ReplyBody::Create2 { path, stat } => {
                    let path = below(chroot, path);
                    Ok(Created { path, stat })
                }
                other => Err(unexpected(&other)),
            }
        })
    }

    /// Deletes a znode with any version of its data.
    pub fn delete(&self, path: &str) -> Pending<()> {
        let delete = self.scope.with_server_path(Operation::delete(path));
        self.ask(delete.map(alone), |_, answer, _| accepted(answer).map(drop))
    }

    /// Reads the names of a znode's children, in no order.
    pub fn list(&self, path: &str) -> Pending<Vec<String>> {
        self.read(path, false, RequestBody::GetChildren, |_, answer, _| {
            children(answer)
        })
    }

    /// Reads the names of a znode's children, and watches for created and deleted children.
    pub fn list_and_watch(&self, path: &str) -> Pending<(Vec<String>, Watch)> {
        self.read(path, true, RequestBody::GetChildren, |_, answer, watch| {
            Ok((children(answer)?, expect_watch(watch)?))
        })
    }

    /// Reads the data and the metadata of a znode.
    pub fn get(&self, path: &str) -> Pending<Node> {
        self.read(path, false, RequestBody::GetData, |_, answer, _| {
            node(answer)
        })
    }

    /// Reads a znode, and watches for a change of its data and for its deletion.
    ///
    /// If the znode does not exist, no watch is set.
    pub fn get_and_watch(&self, path: &str) -> Pending<(Vec<u8>, Stat, Watch)> {
        self.read(path, true, RequestBody::GetData, |_, answer, watch| {
            let (data, stat) = node(answer)?;
            Ok((data, stat, expect_watch(watch)?))
        })
    }

    /// Reads the metadata of a znode, and watches for its creation, change and deletion.
    ///
    /// `None` means that the znode does not exist. The watch is set even then.
    pub fn exists_and_watch(&self, path: &str) -> Pending<(Option<Stat>, Watch)> {
        self.read(path, true, RequestBody::Exists, |_, answer, watch| {
            let stat = match accepted(answer) {
                Ok(ReplyBody::Stat(stat)) => Some(stat),
                Ok(other) => return Err(unexpected(&other)),
                Err(error) if error.is(Refusal::NoNode) => None,
                Err(error) => return Err(error),
            };
            Ok((stat, expect_watch(watch)?))
        })
    }

    /// Applies all of `operations` in one transaction, or none of them.
    ///
    /// A create whose metadata some servers do not send has [a stat](Stat::is_invalid) that says so.
    pub fn transact<'a>(
        &self,
        operations: impl Into<Cow<'a, [Operation]>>,
    ) -> Pending<Vec<Outcome>, TransactionError> {
        let operations = operations.into().into_owned();
        if operations.is_empty() {
            return Pending::known(Ok(Vec::new()));
        }
        let operations = operations.into_iter().enumerate();
        let at_server = operations.map(|(index, operation)| {
            let refused = |error| TransactionError {
                operation: Some(index),
                error,
            };
            self.scope.with_server_path(operation).map_err(refused)
        });
        let request = at_server.collect::<Result<_, _>>().map(RequestBody::Multi);
        self.ask(request, |chroot, answer, _| match accepted(answer)? {
            ReplyBody::Multi(results) => match refused(&results) {
                Some(refused) => Err(refused),
                None => {
                    let outcomes = results.into_iter().map(|it| outcome(chroot, it));
                    Ok(outcomes.collect::<Result<_, _>>()?)
                }
            },
            other => Err(unexpected(&other).into()),
        })
    }

    /// Reads the names of a znode's children, in no order, and the metadata of the znode itself.
    pub fn list_with_stat(&self, path: &str) -> Pending<(Vec<String>, Stat)> {
        self.read(
            path,
            false,
            RequestBody::GetChildren2,
            |_, answer, _| match accepted(answer)? {
                ReplyBody::Children2 { children, stat } => Ok((children, stat)),
                other => Err(unexpected(&other)),
            },
        )
    }

    /// Reads several znodes in one request, or in several if one would be too long.
    ///
    /// `None` means that the znode does not exist.
    pub fn get_each(
        &self,
        paths: &[String],
    ) -> impl Future<Output = Result<Vec<Option<Node>>, ServerError>> + Send + use<> {
        let read = self.try_get_each(paths);
        async move { read.await?.into_iter().map(if_there).collect() }
    }

    /// As [`get_each`](Self::get_each), with a result for each znode: some may not be readable.
    pub fn try_get_each(
        &self,
        paths: &[String],
    ) -> impl Future<Output = Result<Vec<Result<Node, ServerError>>, ServerError>> + Send + use<>
    {
        let requests = self.scope.reads(paths).into_iter();
        let replies: Vec<_> = requests
            .map(|paths| {
                let reads = paths.iter().map(|path| {
                    let path = self.scope.server_path(path, false)?;
                    let watch = false;
                    Ok(Operation::GetData(ReadRequest { path, watch }))
                });
                let request = reads.collect::<Result<_, _>>().map(RequestBody::MultiRead);
                self.ask(request, |_, answer, _| match accepted(answer)? {
                    ReplyBody::Multi(results) => Ok(results.into_iter().map(read_result).collect()),
                    other => Err(unexpected(&other)),
                })
            })
            .collect();
        async move {
            let mut nodes: Vec<Result<Node, ServerError>> = Vec::new();
            for reply in replies {
                nodes.append(&mut reply.await?);
            }
            Ok(nodes)
        }
    }

    /// Watches a znode and all znodes below it, also those that are created later.
    ///
    /// The znode need not exist. Read the tree after this has returned, then again whatever
    /// [an event](TreeWatch::next) names: no change is missed. ZooKeeper has such watches since 3.6.
    /// A server that does not know the request closes the connection. Apache's servers then give the
    /// session back over another one. ClickHouse Keeper answers the reconnect with a new session, so
    /// that this one is over, with its holds. Such a watch is then refused without a request for ten
    /// minutes, also in later sessions.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the watch is removed.
    ///
    /// # Errors
    ///
    /// [`Refusal::Unimplemented`] if the server has no such watches, or the session is that of a
    /// [user's client](crate::ensemble): read the tree at an interval instead.
    pub fn watch_tree(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<TreeWatch, ServerError>> + Send + use<> {
        let path = self.scope.server_path(path, false);
        let events = path.map(|path| self.raw.watch_tree(&path));
        let chroot = self.scope.chroot_length();
        async move {
            let mut events = events?;
            match events.next().await {
                Some(Ok(_)) => Ok(TreeWatch { events, chroot }),
                Some(Err(error)) => Err(error.into()),
                None => Err(RequestError::Unsupported(OpCode::AddWatch).into()),
            }
        }
    }

    /// Makes the server of this session catch up with the leader.
    ///
    /// The answer proves that the server had its leader after this call.
    pub fn sync(&self, path: &str) -> Pending<Exchange> {
        let path = self.scope.server_path(path, false);
        let request = path.map(|path| RequestBody::Sync(PathRequest { path }));
        self.ask(request, |_, answer, _| {
            let exchange = answer.exchange;
            accepted(answer).map(|_| exchange)
        })
    }

    /// Commits a transaction that checks the root of the session's paths, and changes nothing.
    ///
    /// The answer proves that the leader of a quorum has accepted the connection. A server that has
    /// lost its leader accepts a reconnect, and its leader does not hear of it. An isolated leader
    /// accepts one, too. Only the leader of a quorum commits a write. So this leader has touched
    /// the session, and it refuses requests of the session that are still under way over an earlier
    /// connection. [`docs::lease`](crate::docs::lease) has the argument.
    ///
    /// The leader commits it even if the root does not exist, or if the session may not read it.
    pub fn commit_noop(&self) -> Pending<Exchange> {
        let root = self.scope.with_server_path(Operation::check("/"));
        let request = root.map(|root| RequestBody::Multi(vec![root]));
        self.ask(request, |_, answer, _| {
            let exchange = answer.exchange;
            let refused = match accepted(answer) {
                Ok(ReplyBody::Multi(results)) => refused(&results).map(|refused| refused.error),
                Ok(other) => Some(unexpected(&other)),
                Err(error) => Some(error),
            };
            let is_failure =
                |error: &ServerError| !error.is(Refusal::NoNode) && !error.is(Refusal::NoAuth);
            refused.filter(is_failure).map_or(Ok(exchange), Err)
        })
    }

    fn read<T>(
        &self,
        path: &str,
        watch: bool,
        request: fn(ReadRequest) -> RequestBody,
        read: Read<T, ServerError>,
    ) -> Pending<T> {
        let path = self.scope.server_path(path, false);
        let request = path.map(|path| request(ReadRequest { path, watch }));
        self.ask(request, read)
    }

    fn ask<T, E>(&self, request: Result<RequestBody, E>, read: Read<T, E>) -> Pending<T, E> {
        match request {
            Ok(request) => Pending(Asked::Sent {
                reply: self.raw.send(request),
                read,
                chroot: self.scope.chroot_length(),
            }),
            Err(error) => Pending::known(Err(error)),
        }
    }
}

/// A watch of a znode and all znodes below it. If it is dropped, the server forgets the watch.
pub struct TreeWatch {
    events: TreeEvents,
    chroot: usize,
}

impl TreeWatch {
    /// The next event, in the order of the transactions, with the path below the chroot.
    ///
    /// [`TreeEvent::Missed`] comes after each reconnect, and if more than 1 MiB of events wait for
    /// this call: the tree has to be read again. A change of the list of children is no event of
    /// its own: the children are. Servers since 3.8.4 and 3.9.2 report nothing of a znode that the
    /// session may not read.
    ///
    /// `None` if there will be no further event. The session is over, or the present server has no
    /// such watches: call [`ServerSession::watch_tree`] again for the error.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no event is lost.
    pub async fn next(&mut self) -> Option<TreeEvent> {
        let chroot = self.chroot;
        Some(match self.events.next().await?.ok()? {
            TreeEvent::Created(path) => TreeEvent::Created(below(chroot, path)),
            TreeEvent::Deleted(path) => TreeEvent::Deleted(below(chroot, path)),
            TreeEvent::DataChanged(path) => TreeEvent::DataChanged(below(chroot, path)),
            TreeEvent::Missed => TreeEvent::Missed,
        })
    }
}

impl fmt::Debug for TreeWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TreeWatch")
    }
}

impl<T, E> Pending<T, E> {
    /// The answer to what needs no request.
    fn known(answer: Result<T, E>) -> Pending<T, E> {
        Pending(Asked::Known(Box::new(Some(answer))))
    }
}

impl fmt::Debug for ServerSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ServerSession({})", self.id)
    }
}

impl<T, E: From<ServerError>> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        match &mut self.0 {
            Asked::Sent {
                reply,
                read,
                chroot,
            } => reply.poll_unpin(context).map(|answer| match answer {
                Ok((answer, watch)) => read(*chroot, answer, watch),
                Err(error) => Err(ServerError::from(error).into()),
            }),
            Asked::Known(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

impl<T, E> Unpin for Pending<T, E> {}

impl<T, E> fmt::Debug for Pending<T, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pending")
    }
}

/// The request of an operation that is in no transaction.
fn alone(operation: Operation) -> RequestBody {
    match operation {
        Operation::Create(request) => RequestBody::Create(request),
        Operation::Create2(request) => RequestBody::Create2(request),
        Operation::CreateContainer(request) => RequestBody::CreateContainer(request),
        Operation::CreateTtl(request) => RequestBody::CreateTtl(request),
        Operation::Delete(request) => RequestBody::Delete(request),
        Operation::SetData(request) => RequestBody::SetData(request),
        Operation::Check(request) => RequestBody::Check(request),
        Operation::GetData(request) => RequestBody::GetData(request),
        Operation::GetChildren(request) => RequestBody::GetChildren(request),
    }
}

/// The path below the chroot, which has so many bytes, of a znode at this path at the server.
fn below(chroot: usize, mut path: String) -> String {
    match path.get(chroot..) {
        Some("") => "/".to_owned(),
        Some(it) if it.starts_with('/') => {
            path.drain(..chroot);
            path
        }
        _ => path,
    }
}

/// The result of one operation of a transaction, as the session sees it.
fn outcome(chroot: usize, result: Outcome) -> Result<Outcome, ServerError> {
    let created = |path, stat| {
        let path = below(chroot, path);
        Ok(Outcome::Create2 { path, stat })
    };
    match result {
        Outcome::Create2 { path, stat } => created(path, stat),
        Outcome::Create { path } => {
            let unknown = Stat {
                czxid: -1,
                ..Stat::default()
            };
            created(path, unknown)
        }
        Outcome::Check | Outcome::Delete | Outcome::SetData { .. } => Ok(result),
        other => Err(unexpected(&other)),
    }
}

/// The error of a reply of another kind than its request.
fn unexpected(found: &dyn fmt::Debug) -> ServerError {
    ServerError::outcome_unknown(format!("unexpected result in the reply: {found:?}"))
}

fn accepted(answer: Answer) -> Result<ReplyBody, ServerError> {
    match answer.reply.header.error {
        ErrorCode::Ok => Ok(answer.reply.body),
        code => Err(code.into()),
    }
}

/// The state of the connection of a session that was opened with this timeout.
fn seen_with(state: ConnectionState, opened_with: Duration) -> ConnectionState {
    match state {
        ConnectionState::Connected { timeout, .. } | ConnectionState::Disconnected { timeout }
            if timeout < opened_with =>
        {
            ConnectionState::Ended(SessionEnd::TimeoutShortened)
        }
        state => state,
    }
}

/// The next state of the connection. `seen` is the last one.
///
/// Two connections have a [`ConnectionState::Disconnected`] between them, even if nobody looked
/// meanwhile.
async fn next_state(
    states: &mut watch::Receiver<ConnectionState>,
    opened_with: Duration,
    seen: Option<ConnectionState>,
) -> Option<ConnectionState> {
    use ConnectionState::{Connected, Disconnected, Ended};
    loop {
        let state = seen_with(*states.borrow_and_update(), opened_with);
        match (seen, state) {
            (Some(Ended(_)), _) => return None,
            (
                Some(Connected { connection, .. }),
                Connected {
                    connection: after,
                    timeout,
                    ..
                },
            ) if connection != after => return Some(Disconnected { timeout }),
            (Some(Connected { .. }), Connected { .. })
            | (Some(Disconnected { .. }), Disconnected { .. }) => states.changed().await.ok()?,
            _ => return Some(state),
        }
    }
}

/// A znode of a read of several.
fn read_result(result: Outcome) -> Result<Node, ServerError> {
    match result {
        Outcome::GetData { data, stat } => Ok((data.unwrap_or_default(), stat)),
        Outcome::Error(code) => Err(code.into()),
        other => Err(unexpected(&other)),
    }
}

fn children(answer: Answer) -> Result<Vec<String>, ServerError> {
    match accepted(answer)? {
        ReplyBody::Children { children } => Ok(children),
        other => Err(unexpected(&other)),
    }
}

fn node(answer: Answer) -> Result<Node, ServerError> {
    match accepted(answer)? {
        ReplyBody::Data { data, stat } => Ok((data.unwrap_or_default(), stat)),
        other => Err(unexpected(&other)),
    }
}

/// The watch of a read that has succeeded.
fn expect_watch(watch: Option<Watch>) -> Result<Watch, ServerError> {
    watch.ok_or_else(|| ServerError::outcome_unknown("the read has set no watch"))
}

/// The operation that made the server refuse a transaction.
///
/// The server answers the operations before it with no error, and those behind it with a runtime
/// inconsistency.
fn refused(results: &[Outcome]) -> Option<TransactionError> {
    let code = |(index, result): (usize, &Outcome)| match result {
        Outcome::Error(code) => Some((index, *code)),
        _ => None,
    };
    let is_cause =
        |code: ErrorCode| !matches!(code, ErrorCode::Ok | ErrorCode::RuntimeInconsistency);
    let mut codes = results.iter().enumerate().filter_map(code).peekable();
    codes.peek()?;
    Some(match codes.find(|(_, code)| is_cause(*code)) {
        Some((index, code)) => TransactionError {
            operation: Some(index),
            error: code.into(),
        },
        None => ServerError::outcome_unknown("a transaction failed without a cause").into(),
    })
}

#[cfg(test)]
#[path = "../../tests/unit/session.rs"]
mod tests;
