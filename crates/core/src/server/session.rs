//! The requests of a session: typed, at paths below its chroot.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::{self, BoxFuture, FutureExt, Ready};
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use tokio::sync::watch;
use zookeeper_recipes_connection::{
    Answer, ConnectionState, Exchange, RequestError, TreeEvent, TreeEvents, WatchEvent,
};
use zookeeper_recipes_protocol::{
    Acl, AuthId, CreateMode, ErrorCode, OpCode, Operation, Outcome, PathRequest, ReadRequest,
    ReplyBody, RequestBody, Stat,
};

use crate::server::error::{Refusal, ServerError, SessionEnd, if_there};
use crate::server::raw_session::{RawReply, RawSession, SessionId, Watch, boxed_reply};
use crate::server::scope::Scope;

/// Parses an answer whose reply has this form. A `$watch` has to be set, too.
macro_rules! reply {
    ($form:pat => $value:expr) => {
        |answer, _| match accepted(answer)? {
            $form => Ok($value),
            other => Err(unexpected(&other)),
        }
    };
    ($form:pat, $watch:ident => $value:expr) => {
        |answer, watch| match (accepted(answer)?, watch) {
            ($form, Some($watch)) => Ok($value),
            (other, _) => Err(unexpected(&other)),
        }
    };
}

/// One ZooKeeper session that a server has confirmed, with a method for each request of the recipes.
///
/// Each method sends its request when it is called: see [`Pending`]. Dropping the last reference
/// closes the session. [`states`](Self::states) then ends with [`ConnectionState::Ended`].
///
/// # After a reconnect
///
/// A client that reconnects sets its watches again with the last transaction that it has seen. If the
/// servers have come back with an older backup, all that they have is older, and such a watch stays
/// silent about what the backup has changed. So a watch of the methods here also resolves once the
/// session has reconnected, with [`WatchEvent::Unwatched`], and the caller reads again. If the caller
/// drops the watch only after that read, no request removes it in between.
/// [`get_and_keep_watch`](Self::get_and_keep_watch) is the exception.
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
        parse: Parse<T, E>,
        /// The bytes of the chroot.
        chroot: usize,
    },
    /// Nothing is sent.
    Known(Ready<Box<Result<T, E>>>),
}

/// Parses the answer to a request, whose paths are below the chroot already.
type Parse<T, E = ServerError> = fn(Answer, Option<Watch>) -> Result<T, E>;

/// The data and the metadata of a znode.
pub type Node = (Vec<u8>, Stat);

/// A znode that was just created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its path, with the sequence number if the mode is sequential.
    pub path: String,
    /// Its metadata.
    pub stat: Stat,
    /// The number of the connection that carried the create and its reply, if it is known.
    pub connection: Option<u64>,
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
    /// The last known state of the connection.
    ///
    /// The session is over once a server has shortened its timeout: the lease counts with the longer
    /// one, and the server expires by the shorter.
    pub fn state(&self) -> ConnectionState {
        seen_with(*self.connection_states.borrow(), self.timeout)
    }

    /// A stream of the current state of the connection and each later state.
    ///
    /// States that pass quickly may be skipped, also the time between two connections, but the last
    /// state is never skipped. The same state may come again. The stream does not keep the session
    /// open. It ends after [`ConnectionState::Ended`].
    pub fn states(&self) -> BoxStream<'static, ConnectionState> {
        let (states, timeout) = (self.connection_states.clone(), self.timeout);
        stream::unfold((states, None), move |(mut states, seen)| async move {
            match seen {
                None => {}
                Some(ConnectionState::Ended(_)) => return None,
                Some(_) => states.changed().await.ok()?,
            }
            let state = seen_with(*states.borrow_and_update(), timeout);
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
            _ => None,
        }
    }

    /// True if the session has another connection than this one, over which something was asked.
    ///
    /// Servers that a later connection has reached may have lost data, so an earlier answer says
    /// nothing of them. Without a connection the session has not reconnected: the lease says how long
    /// the answer counts.
    pub(crate) fn has_reconnected_since(&self, connection: Option<u64>) -> bool {
        let now = self.connection();
        now.is_some() && now != connection
    }

    /// True if the session still has the connection of this number, over which something was asked.
    pub(crate) fn still_has_connection(&self, connection: Option<u64>) -> bool {
        connection.is_some() && self.connection() == connection
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
        let created = |answer: Answer, _| {
            let connection = answer.exchange.connection;
            match accepted(answer)? {
                ReplyBody::Create2 { path, stat } => Ok(Created {
                    path,
                    stat,
                    connection,
                }),
                other => Err(unexpected(&other)),
            }
        };
        self.operation(Operation::create(path, data, mode, acl.into()), created)
    }

    /// Deletes a znode with any version of its data.
    pub fn delete(&self, path: &str) -> Pending<()> {
        let deleted = |answer, _| accepted(answer).map(drop);
        self.operation(Operation::delete(path), deleted)
    }

    /// Reads the names of a znode's children, in no order.
    pub fn list(&self, path: &str) -> Pending<Vec<String>> {
        let names = reply!(ReplyBody::Children { children } => children);
        self.read(path, false, RequestBody::GetChildren, names)
    }

    /// Reads the names of a znode's children, and watches for created and deleted children.
    ///
    /// The watch also resolves [after a reconnect](Self#after-a-reconnect).
    pub fn list_and_watch(&self, path: &str) -> Pending<(Vec<String>, Watch)> {
        let names = reply!(ReplyBody::Children { children }, watch => (children, watch));
        self.read_and_watch(path, RequestBody::GetChildren, names)
    }

    /// Reads the names of a znode's children, in no order, and the metadata of the znode itself.
    pub fn list_with_stat(&self, path: &str) -> Pending<(Vec<String>, Stat)> {
        let names = reply!(ReplyBody::Children2 { children, stat } => (children, stat));
        self.read(path, false, RequestBody::GetChildren2, names)
    }

    /// Reads the data and the metadata of a znode.
    pub fn get(&self, path: &str) -> Pending<Node> {
        let node = reply!(ReplyBody::Data { data, stat } => (data.unwrap_or_default(), stat));
        self.read(path, false, RequestBody::GetData, node)
    }

    /// Reads a znode, and watches for a change of its data and for its deletion.
    ///
    /// If the znode does not exist, no watch is set. The watch also resolves
    /// [after a reconnect](Self#after-a-reconnect).
    pub fn get_and_watch(&self, path: &str) -> Pending<(Vec<u8>, Stat, Watch)> {
        self.read_and_watch(path, RequestBody::GetData, watched_node)
    }

    /// As [`get_and_watch`](Self::get_and_watch), and the watch does not resolve at a reconnect.
    ///
    /// It reports each deletion. It can miss that a restored backup has other data, or that another
    /// client has created the znode anew. So it is for a znode whose name no other client uses, or
    /// whose deletion alone counts.
    pub fn get_and_keep_watch(&self, path: &str) -> Pending<(Vec<u8>, Stat, Watch)> {
        self.read(path, true, RequestBody::GetData, watched_node)
    }

    /// Reads the metadata of a znode, and watches for its creation, change and deletion.
    ///
    /// `None` means that the znode does not exist. The watch is set even then. It also resolves
    /// [after a reconnect](Self#after-a-reconnect).
    pub fn exists_and_watch(&self, path: &str) -> Pending<(Option<Stat>, Watch)> {
        self.read_and_watch(path, RequestBody::Exists, |answer, watch| {
            match (if_there(accepted(answer))?, watch) {
                (Some(ReplyBody::Stat(stat)), Some(watch)) => Ok((Some(stat), watch)),
                (None, Some(watch)) => Ok((None, watch)),
                (other, _) => Err(unexpected(&other)),
            }
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
        let at_server = operations
            .into_iter()
            .enumerate()
            .map(|(index, operation)| {
                let operation = self.scope.with_server_path(operation);
                operation.map_err(|error| TransactionError {
                    operation: Some(index),
                    error,
                })
            });
        let request = at_server.collect::<Result<_, _>>().map(RequestBody::Multi);
        self.ask(request, |answer, _| transacted(answer))
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
        let replies = self.scope.reads(paths).into_iter().map(|paths| {
            let reads = paths.iter().map(|path| {
                let path = self.scope.server_path(path, false)?;
                Ok(Operation::GetData(ReadRequest::new(path, false)))
            });
            let request = reads.collect::<Result<_, _>>().map(RequestBody::MultiRead);
            self.ask(
                request,
                reply!(ReplyBody::Multi(results) => {
                    results.into_iter().map(node).collect::<Vec<_>>()
                }),
            )
        });
        // All of them are sent now.
        let replies: Vec<_> = replies.collect();
        stream::iter(replies).then(|reply| reply).try_concat()
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
            let unsupported = RequestError::Unsupported(OpCode::AddWatch);
            let mut events = events?.ok_or(unsupported)?;
            events.next().await?;
            Ok(TreeWatch { events, chroot })
        }
    }

    /// Makes the server of this session catch up with the leader.
    ///
    /// The answer proves that the server had its leader after this call.
    pub fn sync(&self, path: &str) -> Pending<Exchange> {
        let path = self.scope.server_path(path, false);
        let request = path.map(|path| RequestBody::Sync(PathRequest { path }));
        self.ask(request, |answer, _| {
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
        self.ask(request, |answer, _| {
            let exchange = answer.exchange;
            match transacted(answer) {
                Err(TransactionError { error, .. })
                    if !error.is(Refusal::NoNode) && !error.is(Refusal::NoAuth) =>
                {
                    Err(error)
                }
                _ => Ok(exchange),
            }
        })
    }

    fn operation<T>(&self, operation: Operation, parse: Parse<T>) -> Pending<T> {
        let operation = self.scope.with_server_path(operation);
        self.ask(operation.map(RequestBody::from), parse)
    }

    fn read<T>(
        &self,
        path: &str,
        watch: bool,
        request: fn(ReadRequest) -> RequestBody,
        parse: Parse<T>,
    ) -> Pending<T> {
        let path = self.scope.server_path(path, false);
        let request = path.map(|path| request(ReadRequest::new(path, watch)));
        self.ask(request, parse)
    }

    /// A read whose watch also resolves once the session has reconnected.
    fn read_and_watch<T>(
        &self,
        path: &str,
        request: fn(ReadRequest) -> RequestBody,
        parse: Parse<T>,
    ) -> Pending<T> {
        let (states, asked_over) = (self.connection_states.clone(), self.connection());
        let until_reconnect = |reply: RawReply| {
            boxed_reply(async move {
                let (answer, watch) = reply.await?;
                let over = answer.exchange.connection.or(asked_over);
                let reconnected = reconnected(states, over).boxed();
                let watch = watch.map(|watch| UntilReconnect { watch, reconnected }.boxed());
                Ok((answer, watch))
            })
        };
        match self.read(path, true, request, parse) {
            Pending(Asked::Sent {
                reply,
                parse,
                chroot,
            }) => Pending(Asked::Sent {
                reply: until_reconnect(reply),
                parse,
                chroot,
            }),
            known => known,
        }
    }

    fn ask<T, E>(&self, request: Result<RequestBody, E>, parse: Parse<T, E>) -> Pending<T, E> {
        match request {
            Ok(request) => Pending(Asked::Sent {
                reply: self.raw.send(request),
                parse,
                chroot: self.scope.chroot_length(),
            }),
            Err(error) => Pending::known(Err(error)),
        }
    }
}

impl fmt::Debug for ServerSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ServerSession({})", self.id)
    }
}

/// A watch that also resolves once the session has reconnected.
///
/// The server has it until it is dropped. If the caller reads the znode again before that, no request
/// removes the watch.
struct UntilReconnect {
    watch: Watch,
    reconnected: BoxFuture<'static, ()>,
}

impl Future for UntilReconnect {
    type Output = WatchEvent;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<WatchEvent> {
        let event = self.watch.poll_unpin(context);
        if event.is_ready() {
            return event;
        }
        let reconnected = self.reconnected.poll_unpin(context);
        reconnected.map(|()| WatchEvent::Unwatched)
    }
}

/// Resolves once the session has another connection than `over`, or is over.
async fn reconnected(mut states: watch::Receiver<ConnectionState>, over: Option<u64>) {
    let is_later = |state: &ConnectionState| match state {
        ConnectionState::Connected { connection, .. } => Some(*connection) != over,
        _ => false,
    };
    let _ = states.wait_for(is_later).await;
}

/// A watch of a znode and all znodes below it. If it is dropped, the server forgets the watch.
#[derive(Debug)]
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
        let mut event = self.events.next().await.ok()?;
        if let TreeEvent::Created(path) | TreeEvent::Deleted(path) | TreeEvent::DataChanged(path) =
            &mut event
        {
            remove_chroot(self.chroot, path);
        }
        Some(event)
    }
}

impl<T, E> Pending<T, E> {
    /// The answer to what needs no request.
    pub(crate) fn known(answer: Result<T, E>) -> Pending<T, E> {
        Pending(Asked::Known(future::ready(Box::new(answer))))
    }
}

impl<T, E: From<ServerError>> Future for Pending<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        match &mut self.0 {
            Asked::Sent {
                reply,
                parse,
                chroot,
            } => {
                let answer = ready!(reply.poll_unpin(context));
                let (mut answer, watch) = answer.map_err(ServerError::from)?;
                put_below_chroot(*chroot, &mut answer.reply.body);
                Poll::Ready(parse(answer, watch))
            }
            Asked::Known(answer) => answer.poll_unpin(context).map(|answer| *answer),
        }
    }
}

impl<T, E> Unpin for Pending<T, E> {}

impl<T, E> fmt::Debug for Pending<T, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pending")
    }
}

/// Removes the chroot, which has so many bytes, from the paths of the znodes that were created.
fn put_below_chroot(chroot: usize, reply: &mut ReplyBody) {
    match reply {
        ReplyBody::Create2 { path, .. } => remove_chroot(chroot, path),
        ReplyBody::Multi(results) => {
            for result in results {
                if let Outcome::Create { path } | Outcome::Create2 { path, .. } = result {
                    remove_chroot(chroot, path);
                }
            }
        }
        _ => {}
    }
}

/// Removes the chroot, which has so many bytes, from a path at the server.
fn remove_chroot(chroot: usize, path: &mut String) {
    match path.get(chroot..) {
        Some("") => "/".clone_into(path),
        Some(it) if it.starts_with('/') => drop(path.drain(..chroot)),
        _ => {}
    }
}

/// The result of one operation. Some servers answer the create of a container without a stat.
fn with_stat(result: Outcome) -> Outcome {
    match result {
        Outcome::Create { path } => {
            let stat = Stat {
                czxid: -1,
                ..Stat::default()
            };
            Outcome::Create2 { path, stat }
        }
        result => result,
    }
}

/// The error of a reply of another kind than its request.
fn unexpected<E: From<ServerError>>(found: &dyn fmt::Debug) -> E {
    ServerError::outcome_unknown(format!("unexpected result in the reply: {found:?}")).into()
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

/// A znode of a read of several.
fn node(result: Outcome) -> Result<Node, ServerError> {
    match result {
        Outcome::GetData { data, stat } => Ok((data.unwrap_or_default(), stat)),
        Outcome::Error(code) => Err(code.into()),
        other => Err(unexpected(&other)),
    }
}

/// A znode that is watched.
fn watched_node(
    answer: Answer,
    watch: Option<Watch>,
) -> Result<(Vec<u8>, Stat, Watch), ServerError> {
    match (accepted(answer)?, watch) {
        (ReplyBody::Data { data, stat }, Some(watch)) => {
            Ok((data.unwrap_or_default(), stat, watch))
        }
        (other, _) => Err(unexpected(&other)),
    }
}

/// The results of a transaction that was not refused.
fn transacted(answer: Answer) -> Result<Vec<Outcome>, TransactionError> {
    match accepted(answer)? {
        ReplyBody::Multi(results) => match refused(&results) {
            Some(refused) => Err(refused),
            None => Ok(results.into_iter().map(with_stat).collect()),
        },
        other => Err(unexpected(&other)),
    }
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
