//! A session over the library's own connection.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use zookeeper_recipes_connection::{Answer, Connection, Pending, State, WatchedRead};
use zookeeper_recipes_protocol::{
    DeleteRequest, ErrorCode, MultiOperation, MultiResult, PathRequest, ReadRequest, ReplyBody,
    RequestBody,
};

use crate::server::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Created, Exchange, Node, Operation, Outcome, Reply,
    ServerSession, SessionId, Stat, TransactionError, Watch,
};
use crate::server::error::{Refusal, ServerError};
use crate::server::request_limit::RequestLimit;
use crate::server::scope::Scope;
use crate::server::values::{
    connection_state, create_request, error_of_code, event_of, multi_operation, no_reply,
};

pub(crate) struct ZookeeperSession {
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: SessionId,
    /// The session timeout as the session was opened, with which its lease counts.
    pub(crate) timeout: Duration,
    pub(crate) scope: Scope,
    /// Set once the session is open.
    pub(crate) limit: OnceLock<RequestLimit>,
    /// `None` if the servers do not accept the library's own identity.
    pub(crate) own_identity: Option<AuthId>,
}

impl ZookeeperSession {
    /// Sends a request about one znode, at its path at the server.
    fn ask(
        &self,
        path: &str,
        request: impl FnOnce(String) -> RequestBody,
    ) -> Result<Pending, ServerError> {
        let path = self.scope.server_path(path, false);
        let path = path.map_err(ServerError::Refused)?;
        Ok(self.connection.request(request(path)))
    }

    fn ask_to_create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Result<Pending, ServerError> {
        let refused = ServerError::Refused;
        self.scope.check_acl(acl).map_err(refused)?;
        let is_sequential = mode.is_sequential();
        let path = self.scope.path_below_root(path, is_sequential, "create");
        let path = path.map_err(refused)?;
        let request = create_request(path, data, mode, acl);
        Ok(self.connection.request(match mode {
            CreateMode::Container => RequestBody::CreateContainer(request),
            _ => RequestBody::Create2(request),
        }))
    }

    /// Sends a read that sets a watch. The watch is `None` if it was not set.
    fn watch<'a>(
        &'a self,
        read: WatchedRead,
        path: &str,
    ) -> impl Future<Output = Result<(Answer, Option<Watch>), ServerError>> + Send + use<'a> {
        let path = self.scope.server_path(path, false);
        let pending = path.map(|path| self.connection.watch(read, &path));
        let states = self.connection.states();
        async move {
            let pending = pending.map_err(ServerError::Refused)?;
            let (answer, watch) = pending.await.map_err(no_reply)?;
            let watch = watch.map(|watch| {
                let event = async move { event_of(watch.await, end(&states)) };
                event.boxed()
            });
            Ok((answer, watch))
        }
    }
}

/// The result of one operation of a transaction.
fn outcome(scope: &Scope, result: MultiResult) -> Result<Outcome, ServerError> {
    Ok(match result {
        MultiResult::Check => Outcome::Checked,
        MultiResult::Delete => Outcome::Deleted,
        MultiResult::SetData { stat } => Outcome::DataSet(stat),
        MultiResult::Create2 { path, stat } => Outcome::Created(scope.created(path, stat)),
        MultiResult::Create { path } => {
            let unknown = Stat {
                czxid: -1,
                ..Stat::default()
            };
            Outcome::Created(scope.created(path, unknown))
        }
        other => return Err(unexpected(&other)),
    })
}

fn read(path: String) -> ReadRequest {
    ReadRequest { path, watch: false }
}

fn end(states: &watch::Receiver<State>) -> Option<zookeeper_recipes_connection::End> {
    match *states.borrow() {
        State::Ended(end) => Some(end),
        State::Connected { .. } | State::Disconnected { .. } => None,
    }
}

/// The error of a reply of another kind than its request.
fn unexpected(found: &dyn fmt::Debug) -> ServerError {
    ServerError::outcome_unknown(format!("unexpected result in the reply: {found:?}"))
}

/// The body of a reply without an error code.
async fn body(pending: Result<Pending, ServerError>) -> Result<ReplyBody, ServerError> {
    accepted(pending?.await.map_err(no_reply)?)
}

fn accepted(answer: Answer) -> Result<ReplyBody, ServerError> {
    match answer.reply.header.error {
        ErrorCode::Ok => Ok(answer.reply.body),
        code => Err(error_of_code(code)),
    }
}

impl fmt::Debug for ZookeeperSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ZookeeperSession({})", self.id)
    }
}

impl ServerSession for ZookeeperSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn state(&self) -> ConnectionState {
        connection_state(self.connection.state(), self.timeout)
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        let (states, timeout) = (self.connection.states(), self.timeout);
        stream::unfold(
            (states, Seen::Nothing),
            move |(mut states, seen)| async move {
                let (state, seen) = next_state(&mut states, timeout, seen).await?;
                Some((state, (states, seen)))
            },
        )
        .boxed()
    }

    fn connection(&self) -> Option<u64> {
        match self.connection.state() {
            State::Connected { connection, .. } => Some(connection),
            State::Disconnected { .. } | State::Ended(_) => None,
        }
    }

    fn opened_over(&self) -> Option<u64> {
        self.connection.opened_over()
    }

    fn limit_requests(&self, bytes: usize) {
        self.connection.limit_requests(bytes);
        let _ = self.limit.set(self.scope.limit(bytes));
    }

    fn leave_server(&self) {
        self.connection.leave_server();
    }

    fn orders_events(&self) -> bool {
        true
    }

    fn own_identity(&self) -> Option<AuthId> {
        self.own_identity.clone()
    }

    fn close(&self) -> Option<Arc<dyn ServerSession>> {
        self.connection.begin_close();
        None
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        let pending = self.ask_to_create(path, data, mode, acl);
        async move {
            match body(pending).await? {
                ReplyBody::Create2 { path, stat } => Ok(self.scope.created(path, stat)),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        let path = self.scope.path_below_root(path, false, "delete");
        let pending = path.map_err(ServerError::Refused).map(|path| {
            let request = DeleteRequest { path, version: -1 };
            self.connection.request(RequestBody::Delete(request))
        });
        async move { body(pending).await.map(drop) }.boxed()
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        let pending = self.ask(path, |path| RequestBody::GetChildren(read(path)));
        async move { children(body(pending).await?) }.boxed()
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        let reply = self.watch(WatchedRead::Children, path);
        async move {
            let (answer, watch) = reply.await?;
            Ok((children(accepted(answer)?)?, expect_watch(watch)?))
        }
        .boxed()
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        let pending = self.ask(path, |path| RequestBody::GetData(read(path)));
        async move { node(body(pending).await?) }.boxed()
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        let reply = self.watch(WatchedRead::Data, path);
        async move {
            let (answer, watch) = reply.await?;
            let (data, stat) = node(accepted(answer)?)?;
            Ok((data, stat, expect_watch(watch)?))
        }
        .boxed()
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        let reply = self.watch(WatchedRead::Exists, path);
        async move {
            let (answer, watch) = reply.await?;
            let stat = match accepted(answer) {
                Ok(ReplyBody::Stat(stat)) => Some(stat),
                Ok(other) => return Err(unexpected(&other)),
                Err(error) if error.is(Refusal::NoNode) => None,
                Err(error) => return Err(error),
            };
            Ok((stat, expect_watch(watch)?))
        }
        .boxed()
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        let mut multi = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            match self.scope.operation(operation) {
                Ok(operation) => multi.push(multi_operation(operation)),
                Err(refusal) => {
                    let operation = Some(index);
                    let error = ServerError::Refused(refusal);
                    return ready(Err(TransactionError { operation, error })).boxed();
                }
            }
        }
        if multi.is_empty() {
            return ready(Ok(Vec::new())).boxed();
        }
        let pending = Ok(self.connection.request(RequestBody::Multi(multi)));
        async move {
            let whole = |error| TransactionError {
                operation: None,
                error,
            };
            let results = match body(pending).await.map_err(whole)? {
                ReplyBody::Multi(results) => results,
                other => return Err(whole(unexpected(&other))),
            };
            if let Some(refused) = refused(&results) {
                return Err(refused);
            }
            let outcomes = results
                .into_iter()
                .map(|result| outcome(&self.scope, result));
            outcomes.collect::<Result<_, _>>().map_err(whole)
        }
        .boxed()
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        let requests = match self.limit.get() {
            Some(limit) => limit.reads(paths),
            None => vec![paths],
        };
        let mut replies = Vec::new();
        for paths in requests.into_iter().filter(|paths| !paths.is_empty()) {
            let reads = paths.iter().map(|path| self.scope.server_path(path, false));
            let reads = reads.map(|path| Ok(MultiOperation::GetData(read(path?))));
            match reads.collect() {
                Ok(reads) => replies.push(self.connection.request(RequestBody::MultiRead(reads))),
                Err(refusal) => return ready(Err(ServerError::Refused(refusal))).boxed(),
            }
        }
        async move {
            let mut nodes = Vec::new();
            for reply in replies {
                match body(Ok(reply)).await? {
                    ReplyBody::Multi(results) => {
                        for result in results {
                            nodes.push(read_result(result)?);
                        }
                    }
                    other => return Err(unexpected(&other)),
                }
            }
            Ok(nodes)
        }
        .boxed()
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, Exchange> {
        let pending = self.ask(path, |path| RequestBody::Sync(PathRequest { path }));
        async move {
            let answer = pending?.await.map_err(no_reply)?;
            let exchange = exchange(&answer);
            accepted(answer).map(|_| exchange)
        }
        .boxed()
    }

    fn commit_noop(&self) -> Reply<'_, Exchange> {
        let root = self.scope.operation(&Operation::check("/"));
        let pending = root.map_err(ServerError::Refused).map(|root| {
            let check = RequestBody::Multi(vec![multi_operation(root)]);
            self.connection.request(check)
        });
        async move {
            let answer = pending?.await.map_err(no_reply)?;
            let exchange = exchange(&answer);
            let refused = match accepted(answer) {
                Ok(ReplyBody::Multi(results)) => refused(&results).map(|refused| refused.error),
                Ok(other) => Some(unexpected(&other)),
                Err(error) => Some(error),
            };
            let is_failure =
                |error: &ServerError| !error.is(Refusal::NoNode) && !error.is(Refusal::NoAuth);
            refused.filter(is_failure).map_or(Ok(exchange), Err)
        }
        .boxed()
    }
}

fn exchange(answer: &Answer) -> Exchange {
    Exchange {
        sent: answer.sent_at,
        answered: answer.answered_at,
        connection: Some(answer.connection),
    }
}

/// What a stream of states has yielded last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    Connected(u64),
    Disconnected,
    Ended,
}

/// The next state of the connection.
///
/// Two connections have a [`ConnectionState::Disconnected`] between them, even if nobody looked
/// meanwhile.
async fn next_state(
    states: &mut watch::Receiver<State>,
    timeout: Duration,
    seen: Seen,
) -> Option<(ConnectionState, Seen)> {
    loop {
        let state = *states.borrow_and_update();
        let as_core_sees = connection_state(state, timeout);
        let now = match (as_core_sees, state) {
            (ConnectionState::Ended(_), _) => Seen::Ended,
            (_, State::Connected { connection, .. }) => Seen::Connected(connection),
            _ => Seen::Disconnected,
        };
        match (seen, now) {
            (Seen::Ended, _) => return None,
            (Seen::Connected(before), Seen::Connected(after)) if before != after => {
                return Some((ConnectionState::Disconnected, Seen::Disconnected));
            }
            _ if seen != now => return Some((as_core_sees, now)),
            _ => states.changed().await.ok()?,
        }
    }
}

/// A znode of a read of several. `None` if it does not exist.
fn read_result(result: MultiResult) -> Result<Option<Node>, ServerError> {
    match result {
        MultiResult::GetData { data, stat } => Ok(Some((data.unwrap_or_default(), stat))),
        MultiResult::Error(ErrorCode::NoNode) => Ok(None),
        MultiResult::Error(code) => Err(error_of_code(code)),
        other => Err(unexpected(&other)),
    }
}

fn children(body: ReplyBody) -> Result<Vec<String>, ServerError> {
    match body {
        ReplyBody::Children { children } => Ok(children),
        other => Err(unexpected(&other)),
    }
}

fn node(body: ReplyBody) -> Result<Node, ServerError> {
    match body {
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
fn refused(results: &[MultiResult]) -> Option<TransactionError> {
    let code = |(index, result): (usize, &MultiResult)| match result {
        MultiResult::Error(code) => Some((index, *code)),
        _ => None,
    };
    let is_cause =
        |code: ErrorCode| !matches!(code, ErrorCode::Ok | ErrorCode::RuntimeInconsistency);
    let mut codes = results.iter().enumerate().filter_map(code).peekable();
    codes.peek()?;
    Some(match codes.find(|(_, code)| is_cause(*code)) {
        Some((index, code)) => TransactionError {
            operation: Some(index),
            error: error_of_code(code),
        },
        None => TransactionError {
            operation: None,
            error: ServerError::outcome_unknown("a transaction failed without a cause"),
        },
    })
}

#[cfg(test)]
#[path = "../../tests/unit/session.rs"]
mod tests;
