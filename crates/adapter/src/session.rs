//! The requests of the protocol, sent by the crate `zookeeper-client`.

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, FutureExt};
use tokio::task::unconstrained;
use zookeeper_client::{Client, OneshotWatcher};
use zookeeper_recipes_connection::{WatchedRead, check_length};
use zookeeper_recipes_core::ensemble::{
    Answer, EventType, Exchange, Operation, Outcome, RawAnswer, RawReply, RawSession, RequestBody,
    RequestError, Scope, ServerSession, SessionEnd, SessionId, Watch, WatchEvent, boxed_reply, now,
};
use zookeeper_recipes_protocol::{
    CreateRequest, ErrorCode, PathRequest, ReadRequest, Reply, ReplyBody,
};

use crate::fence::Fence;
use crate::transaction::{read_each, transact};
use crate::values::{Failure, client_acl, client_mode, event_of, stat_of, understood};
use crate::watched_paths::{Place, WatchedPaths};

/// A znode without a watch is read so often in a session timeout.
const POLLS_IN_TIMEOUT: u32 = 6;

/// A session of the crate `zookeeper-client`.
#[derive(Clone)]
pub(crate) struct ClientSession {
    client: Client,
    fence: Arc<Fence>,
    watched: Arc<WatchedPaths>,
    /// The longest request that the servers accept.
    limit: usize,
    /// True once the recipes have closed the session. Locked while a request is sent.
    is_closed: Arc<Mutex<bool>>,
}

impl ClientSession {
    /// The session of this client, and what sends its last requests once that is closed.
    pub(crate) fn open(client: Client, fence: Arc<Fence>, scope: Scope) -> ServerSession {
        let timeout = client.session_timeout();
        let session = ClientSession {
            client,
            fence: fence.clone(),
            watched: Arc::default(),
            limit: scope.longest_request,
            is_closed: Arc::default(),
        };
        let left_open = ClientSession {
            is_closed: Arc::default(),
            ..session.clone()
        };
        ServerSession {
            raw: Arc::new(session),
            connection_states: fence.gate.state.subscribe(),
            id: fence.gate.session,
            timeout,
            // The client does not say. The lease of its session begins on no proven connection.
            opened_over: fence.gate.connection(),
            // If the server refused an identity, it would end the user's session.
            own_identity: None,
            left_open: Some(Arc::new(left_open)),
            scope,
        }
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientSession({})", self.fence.gate.session)
    }
}

impl RawSession for ClientSession {
    /// Sends a request, at once if requests are known to reach this session.
    fn send(&self, request: RequestBody) -> RawReply {
        let session = self.clone();
        begun(async move {
            check_length(&request, session.limit)?;
            let guard = session.fence.gate.opens().await;
            let guard = guard.map_err(RequestError::Ended)?;
            session.send_now(request, guard).await
        })
    }

    fn orders_events(&self) -> bool {
        !self.watched.was_full()
    }

    /// Sends nothing, because the user's client closes its session when it is dropped.
    ///
    /// A request of another thread is sent before the call returns, or never.
    fn close(&self) {
        *self
            .is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// Polls an answer once: its first poll sends the request.
fn begun(answer: impl Future<Output = RawAnswer> + Send + 'static) -> RawReply {
    let mut answer = answer.boxed();
    match unconstrained(&mut answer).now_or_never() {
        Some(answer) => boxed_reply(ready(answer)),
        None => Either::Right(answer),
    }
}

type Replied = Result<(Reply, Option<Watch>), Failure>;

/// The reply to a request that has succeeded, and the watch that it has set.
fn accepted(body: ReplyBody, watch: Option<Watch>) -> Replied {
    Ok((Reply::new(0, 0, body), watch))
}

impl ClientSession {
    /// Sends a request now, unless the session is closed.
    fn send_now(self, request: RequestBody, guard: Arc<str>) -> RawReply {
        let is_closed = self.is_closed.clone();
        let is_closed = is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        match *is_closed {
            true => boxed_reply(ready(Err(RequestError::Ended(SessionEnd::Closed)))),
            false => begun(self.answer(request, guard)),
        }
    }

    /// Sends a request when it is first polled, and notes when it and its answer pass.
    async fn answer(self, request: RequestBody, guard: Arc<str>) -> RawAnswer {
        let gate = &self.fence.gate;
        let (sent, connection) = (now(), gate.connection());
        let (reply, watch) = match self.reply(request, &guard).await {
            Ok(replied) => replied,
            Err(Failure::Refused(code)) => (Reply::failed(0, 0, code), None),
            Err(Failure::NoReply(error)) => return Err(error),
        };
        // The client sends some requests over the next connection.
        let exchange = Exchange {
            sent,
            answered: now(),
            connection: connection.filter(|before| gate.connection() == Some(*before)),
        };
        Ok((Answer { reply, exchange }, watch))
    }

    async fn reply(&self, request: RequestBody, guard: &str) -> Replied {
        let ClientSession { client, fence, .. } = self;
        match request {
            RequestBody::Create2(create) | RequestBody::CreateContainer(create) => {
                self.create(create).await
            }
            RequestBody::Delete(delete) => {
                let delete = [Operation::Delete(delete)];
                match &transact(client, fence, guard, &delete).await?[..] {
                    [Outcome::Error(code)] => Err(Failure::Refused(*code)),
                    _ => accepted(ReplyBody::Empty, None),
                }
            }
            RequestBody::Multi(operations) => {
                let results = transact(client, fence, guard, &operations).await?;
                accepted(ReplyBody::Multi(results), None)
            }
            RequestBody::MultiRead(reads) => {
                accepted(ReplyBody::Multi(read_each(client, &reads).await?), None)
            }
            RequestBody::Sync(PathRequest { path }) => {
                understood(client.sync(&path)).await?;
                accepted(ReplyBody::Sync { path }, None)
            }
            RequestBody::GetChildren(read) => self.list(&read).await,
            RequestBody::GetChildren2(read) if !read.watch => {
                let (children, stat) = understood(client.get_children(&read.path)).await?;
                let stat = stat_of(stat);
                accepted(ReplyBody::Children2 { children, stat }, None)
            }
            RequestBody::GetData(read) => self.read(&read).await,
            RequestBody::Exists(read) => self.find(&read).await,
            _ => Err(Failure::Refused(ErrorCode::Unimplemented)),
        }
    }

    async fn create(&self, create: CreateRequest) -> Replied {
        let CreateRequest {
            mut path,
            data,
            acl,
            mode,
        } = create;
        let acl = client_acl(&acl);
        let options = client_mode(mode)?.with_acls(acl.as_slice().into());
        let data = data.unwrap_or_default();
        let reply = self.client.create(&path, &data, &options);
        let (stat, sequence) = understood(reply).await?;
        if mode.is_sequential() || sequence.into_i64() >= 0 {
            path = format!("{path}{sequence}");
        }
        let stat = stat_of(stat);
        if mode.is_ephemeral() {
            let owner = SessionId(stat.ephemeral_owner);
            self.fence.check_owner(&path, owner)?;
        }
        accepted(ReplyBody::Create2 { path, stat }, None)
    }

    async fn list(&self, read: &ReadRequest) -> Replied {
        let (client, path) = (&self.client, &read.path);
        let (children, watch) = if let Some(place) = self.place(WatchedRead::Children, read) {
            let listed = understood(client.list_and_watch_children(path)).await;
            let (children, watcher) = listed?;
            (children, Some(self.watch(place, watcher)))
        } else {
            let children = understood(client.list_children(path)).await?;
            (children, read.watch.then(|| self.pause()))
        };
        accepted(ReplyBody::Children { children }, watch)
    }

    async fn read(&self, read: &ReadRequest) -> Replied {
        let (client, path) = (&self.client, &read.path);
        let (data, stat, watch) = if let Some(place) = self.place(WatchedRead::Data, read) {
            let found = understood(client.get_and_watch_data(path)).await;
            let (data, stat, watcher) = found?;
            (data, stat, Some(self.watch(place, watcher)))
        } else {
            let (data, stat) = understood(client.get_data(path)).await?;
            let changed = || self.changed(path.clone(), stat.mzxid);
            (data, stat, read.watch.then(changed))
        };
        let (data, stat) = (Some(data), stat_of(stat));
        accepted(ReplyBody::Data { data, stat }, watch)
    }

    async fn find(&self, read: &ReadRequest) -> Replied {
        let (client, path) = (&self.client, &read.path);
        let (stat, watch) = if let Some(place) = self.place(WatchedRead::Exists, read) {
            let found = understood(client.check_and_watch_stat(path)).await;
            let (stat, watcher) = found?;
            (stat, Some(self.watch(place, watcher)))
        } else {
            let stat = understood(client.check_stat(path)).await?;
            (stat, read.watch.then(|| self.pause()))
        };
        match stat {
            Some(stat) => accepted(ReplyBody::Stat(stat_of(stat)), watch),
            None => Ok((Reply::failed(0, 0, ErrorCode::NoNode), watch)),
        }
    }

    /// The place of a watch, if one is to be set and the client can set one more watch again.
    fn place(&self, kind: WatchedRead, read: &ReadRequest) -> Option<Place> {
        let place = || self.watched.place(kind, read.path.clone());
        read.watch.then(place).flatten()
    }

    /// A watch that gives its place back when it has resolved or is dropped.
    fn watch(&self, place: Place, watcher: OneshotWatcher) -> Watch {
        let gate = self.fence.gate.clone();
        async move {
            let event = event_of(watcher).await;
            drop(place);
            // If the event came over a later connection, the state shows the break before it.
            gate.passes();
            event
        }
        .boxed()
    }

    fn poll_interval(&self) -> Duration {
        self.client.session_timeout() / POLLS_IN_TIMEOUT
    }

    /// In place of a watch: resolves when the caller should read again.
    fn pause(&self) -> Watch {
        let pause = tokio::time::sleep(self.poll_interval());
        pause.map(|()| WatchEvent::Unwatched).boxed()
    }

    /// In place of a watch: reads the data from time to time, until it has changed.
    fn changed(&self, path: String, mzxid: i64) -> Watch {
        let (client, gate) = (self.client.clone(), self.fence.gate.clone());
        let pause = self.poll_interval();
        async move {
            loop {
                tokio::time::sleep(pause).await;
                // The client reads on in another session that it has adopted.
                if gate.opens().await.is_err() {
                    return WatchEvent::Unwatched;
                }
                match understood(client.get_data(&path))
                    .await
                    .map_err(Failure::from)
                {
                    Ok((_, stat)) if stat.mzxid == mzxid => {}
                    Err(Failure::NoReply(RequestError::Ended(_))) => return WatchEvent::Unwatched,
                    Err(Failure::NoReply(_)) => {}
                    Err(Failure::Refused(ErrorCode::NoNode)) => {
                        return WatchEvent::Fired(EventType::NodeDeleted);
                    }
                    _ => return WatchEvent::Fired(EventType::NodeDataChanged),
                }
            }
        }
        .boxed()
    }
}
