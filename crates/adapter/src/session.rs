//! A session over the crate `zookeeper-client`.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::BoxStream;
use zookeeper_client as client;

use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Created, Event, Exchange, Node, Operation, Outcome,
    Reply, RequestLimit, ServerSession, SessionId, Stat, TransactionError, Watch, now,
};
use zookeeper_recipes_core::{Refusal, ServerError, SessionEnd};

use crate::fence::Fence;
use crate::transaction::transact;
use crate::values::{classify, client_acl, client_mode, stat_of, understood, watch};
use crate::watched_paths::{Kind, Place, WatchedPaths};

/// A znode without a watch is read so often in a session timeout.
const POLLS_IN_TIMEOUT: u32 = 6;

/// A session of the crate `zookeeper-client`.
pub(crate) struct ClientSession {
    pub(crate) client: client::Client,
    pub(crate) fence: Arc<Fence>,
    pub(crate) watched: Arc<WatchedPaths>,
    /// Set once the session is open.
    pub(crate) limit: OnceLock<RequestLimit>,
    /// True once the recipes have closed the session. Locked while a request is sent.
    pub(crate) is_closed: Mutex<bool>,
}

impl ClientSession {
    /// Sends a request, at once if requests are known to reach this session.
    ///
    /// `operations` are as long as the request. `send` gets the path of the guard. `over` makes the
    /// answer if the request is too long, and in a session that is over.
    fn passing<'a, F>(
        &'a self,
        operations: &[Operation],
        over: fn(ServerError) -> F::Output,
        send: impl FnOnce(Arc<str>) -> F + Send + 'a,
    ) -> BoxFuture<'a, F::Output>
    where
        F: Future<Output: Send> + Send + 'a,
    {
        let fits = self.limit.get().map(|limit| limit.check(operations));
        if let Some(Err(too_long)) = fits {
            return ready(over(too_long)).boxed();
        }
        // The request is sent by the call, not when its answer is polled.
        let send = move |guard| {
            let is_closed = self.lock_closed();
            match *is_closed {
                true => Err(over(ServerError::SessionOver(SessionEnd::Closed))),
                false => Ok(send(guard)),
            }
        };
        match self.fence.passes() {
            Some(Ok(guard)) => match send(guard) {
                Ok(reply) => reply.boxed(),
                Err(closed) => ready(closed).boxed(),
            },
            Some(Err(error)) => ready(over(error)).boxed(),
            None => async move {
                let guard = self.fence.passage().opens().await.map_err(over);
                match guard.and_then(send) {
                    Ok(reply) => reply.await,
                    Err(error) => error,
                }
            }
            .boxed(),
        }
    }

    fn lock_closed(&self) -> MutexGuard<'_, bool> {
        self.is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request, and notes when it and its answer pass.
    fn exchange<F>(
        &self,
        send: impl FnOnce() -> F,
    ) -> impl Future<Output = Result<Exchange, ServerError>>
    where
        F: Future<Output = Result<(), ServerError>>,
    {
        let (sent, connection) = (now(), self.fence.connection());
        let reply = send();
        async move {
            reply.await?;
            let answered = now();
            // The client sends some requests over the next connection.
            let is_same = self.fence.connection() == connection;
            Ok(Exchange {
                sent,
                answered,
                connection: connection.filter(|_| is_same),
            })
        }
    }

    /// The place of a watch, if the client can set one more watch again.
    fn place(&self, kind: Kind, path: &str) -> Option<Place> {
        let chroot = self.client.path().trim_end_matches('/');
        self.watched.place(kind, format!("{chroot}{path}"))
    }

    /// In place of a watch: resolves when the caller should read again.
    fn pause(&self) -> Watch {
        let pause = tokio::time::sleep(self.timeout() / POLLS_IN_TIMEOUT);
        pause.map(|()| Event::Unwatched).boxed()
    }

    /// In place of a watch: reads the data from time to time, until it has changed.
    fn changed(&self, path: &str, mzxid: i64) -> Watch {
        let (client, path) = (self.client.clone(), path.to_owned());
        let pause = self.timeout() / POLLS_IN_TIMEOUT;
        let mut passage = self.fence.passage();
        async move {
            loop {
                tokio::time::sleep(pause).await;
                // The client reads on in another session that it has adopted.
                if let Err(ServerError::SessionOver(end)) = passage.opens().await {
                    return Event::SessionEnded(end);
                }
                match understood(client.get_data(&path)).await.map_err(classify) {
                    Ok((_, stat)) if stat.mzxid == mzxid => {}
                    Err(ServerError::OutcomeUnknown(_)) => {}
                    Err(ServerError::SessionOver(end)) => return Event::SessionEnded(end),
                    Err(error) if error.is(Refusal::NoNode) => return Event::Deleted,
                    Ok(_) | Err(ServerError::Refused(_)) => return Event::DataChanged,
                }
            }
        }
        .boxed()
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientSession({})", self.id())
    }
}

impl ServerSession for ClientSession {
    fn id(&self) -> SessionId {
        self.fence.session()
    }

    fn timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    fn state(&self) -> ConnectionState {
        self.fence.state()
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        self.fence.states()
    }

    fn connection(&self) -> Option<u64> {
        self.fence.connection()
    }

    /// The client does not say. The lease of its session begins on no proven connection.
    fn opened_over(&self) -> Option<u64> {
        self.connection()
    }

    fn limit_requests(&self, bytes: usize) {
        let _ = self.limit.set(RequestLimit::new(self.client.path(), bytes));
    }

    fn orders_events(&self) -> bool {
        !self.watched.was_full()
    }

    /// None: if the server refused an identity, it would end the user's session.
    fn own_identity(&self) -> Option<AuthId> {
        None
    }

    /// Sends nothing, because the user's client closes its session when it is dropped.
    ///
    /// A request of another thread is sent before the call returns, or never.
    fn close(&self) -> Option<Arc<dyn ServerSession>> {
        if std::mem::replace(&mut *self.lock_closed(), true) {
            return None;
        }
        Some(Arc::new(ClientSession {
            client: self.client.clone(),
            fence: self.fence.clone(),
            watched: self.watched.clone(),
            limit: self.limit.clone(),
            is_closed: Mutex::default(),
        }))
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        let create = Operation::create(path, data, mode, acl);
        let (data, acl) = (data.to_owned(), client_acl(acl));
        self.passing(&[create], Err, move |_| {
            let reply = client_mode(mode).map(|mode| {
                let options = mode.with_acls(acl.as_slice().into());
                self.client.create(path, &data, &options)
            });
            async move {
                let reply = reply?;
                let (stat, sequence) = understood(reply).await.map_err(classify)?;
                let path = match sequence.into_i64() {
                    number if number < 0 && !mode.is_sequential() => path.to_owned(),
                    _ => format!("{path}{sequence}"),
                };
                let stat = stat_of(stat);
                if mode.is_ephemeral() {
                    let owner = SessionId(stat.ephemeral_owner);
                    self.fence.check_owner(&path, owner)?;
                }
                Ok(Created { path, stat })
            }
        })
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        self.transact(&[Operation::delete(path)])
            .map(|done| done.map(drop).map_err(|refused| refused.error))
            .boxed()
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        self.passing(&at(path), Err, move |_| {
            answer(self.client.list_children(path))
        })
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        let Some(place) = self.place(Kind::Children, path) else {
            let names = self.list(path);
            return async move { Ok((names.await?, self.pause())) }.boxed();
        };
        self.passing(&at(path), Err, move |_| {
            let reply = self.client.list_and_watch_children(path);
            async move {
                let (children, watcher) = understood(reply).await.map_err(classify)?;
                Ok((children, keeping(place, watch(watcher))))
            }
        })
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        self.passing(&at(path), Err, move |_| {
            let reply = answer(self.client.get_data(path));
            reply.map(|read| read.map(|(data, stat)| (data, stat_of(stat))))
        })
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        let Some(place) = self.place(Kind::Data, path) else {
            let node = self.get(path);
            return async move {
                let (data, stat) = node.await?;
                Ok((data, stat, self.changed(path, stat.mzxid)))
            }
            .boxed();
        };
        self.passing(&at(path), Err, move |_| {
            let reply = self.client.get_and_watch_data(path);
            async move {
                let (data, stat, watcher) = understood(reply).await.map_err(classify)?;
                let watch = keeping(place, watch(watcher));
                Ok((data, stat_of(stat), watch))
            }
        })
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        let Some(place) = self.place(Kind::Existence, path) else {
            return self.passing(&at(path), Err, move |_| {
                let stat = answer(self.client.check_stat(path));
                async move { Ok((stat.await?.map(stat_of), self.pause())) }
            });
        };
        self.passing(&at(path), Err, move |_| {
            let reply = self.client.check_and_watch_stat(path);
            async move {
                let (stat, watcher) = understood(reply).await.map_err(classify)?;
                Ok((stat.map(stat_of), keeping(place, watch(watcher))))
            }
        })
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        let sent = operations.to_vec();
        let over = |error| {
            let operation = None;
            Err(TransactionError { operation, error })
        };
        self.passing(operations, over, move |guard| {
            transact(&self.client, &self.fence, &guard, &sent)
        })
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        let requests = match self.limit.get() {
            Some(limit) => limit.reads(paths),
            None => vec![paths],
        };
        let replies = requests.into_iter().map(|paths| {
            let reads: Vec<_> = paths.iter().flat_map(|path| at(path)).collect();
            let paths = paths.to_vec();
            self.passing(&reads, Err, move |_| get_each(&self.client, &paths))
        });
        let replies: Vec<_> = replies.collect();
        async move {
            let mut nodes = Vec::new();
            for reply in replies {
                nodes.append(&mut reply.await?);
            }
            Ok(nodes)
        }
        .boxed()
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, Exchange> {
        self.passing(&at(path), Err, move |_| {
            self.exchange(|| answer(self.client.sync(path)))
        })
    }

    /// The transaction that checks the guard is enough.
    fn commit_noop(&self) -> Reply<'_, Exchange> {
        self.passing(&[], Err, move |guard| {
            self.exchange(move || {
                let checked = transact(&self.client, &self.fence, &guard, &[]);
                checked.map(|checked| checked.map(drop).map_err(|refused| refused.error))
            })
        })
    }
}

/// An operation that is as long as a request of this path alone.
fn at(path: &str) -> [Operation; 1] {
    let path = path.to_owned();
    let version = None;
    [Operation::Check { path, version }]
}

/// Reads several znodes in one request.
fn get_each<'a>(client: &'a client::Client, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
    let mut reader = client.new_multi_reader();
    for path in paths {
        if let Err(error) = reader.add_get_data(path) {
            return ready(Err(classify(error))).boxed();
        }
    }
    let reply = reader.commit();
    async move {
        let results = understood(reply).await.map_err(classify)?;
        let nodes = results.into_iter().map(|result| match result {
            client::MultiReadResult::Data { data, stat } => Ok(Some((data, stat_of(stat)))),
            client::MultiReadResult::Error {
                err: client::Error::NoNode,
            } => Ok(None),
            client::MultiReadResult::Error { err } => Err(classify(err)),
            other => {
                let heard = format!("unexpected result in the reply: {other:?}");
                Err(ServerError::outcome_unknown(heard))
            }
        });
        nodes.collect()
    }
    .boxed()
}

/// A watch that gives its place back when it has resolved or is dropped.
fn keeping(place: Place, watch: Watch) -> Watch {
    async move {
        let event = watch.await;
        drop(place);
        event
    }
    .boxed()
}

fn answer<'a, T: 'a>(
    reply: impl Future<Output = Result<T, client::Error>> + Send + 'a,
) -> Reply<'a, T> {
    understood(reply)
        .map(|result| result.map_err(classify))
        .boxed()
}
