//! A session over the crate `zookeeper-client`.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use zookeeper_client as client;

use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Created, Event, Node, Operation, Outcome, Reply,
    ServerSession, SessionId, Stat, TransactionError, Watch,
};
use zookeeper_recipes_core::{Refusal, ServerError};

use crate::values::{classify, client_acl, client_mode, connection_state, stat_of, watch};
use crate::watched_paths::{Kind, Place, WatchedPaths};

/// A znode without a watch is read so often in a session timeout.
const POLLS_IN_TIMEOUT: u32 = 6;

/// A session of the crate `zookeeper-client`.
pub(crate) struct ClientSession {
    pub(crate) client: client::Client,
    pub(crate) watched: Arc<WatchedPaths>,
    /// `None` for a client that the user has connected.
    ///
    /// If the server refused an identity, it would end the user's session.
    pub(crate) own_identity: Option<AuthId>,
    /// True if the user gave the session no identity. Nobody can then match the scheme `auth`.
    pub(crate) is_anonymous: bool,
}

impl ClientSession {
    /// Refuses the scheme `auth` in the access control list of an anonymous session.
    ///
    /// A server refuses this, too, if the session has no identity. The library's own identity
    /// would make the server accept it. But no later session can show that identity.
    fn check_acl(&self, acl: &[Acl]) -> Result<(), ServerError> {
        let by_creator = acl
            .iter()
            .any(|entry| entry.auth_id().scheme() == AuthId::authed().scheme());
        if self.is_anonymous && by_creator {
            return Err(ServerError::Refused(Refusal::InvalidAcl));
        }
        Ok(())
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
        async move {
            loop {
                tokio::time::sleep(pause).await;
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

    /// Adds one operation to a transaction.
    fn add(
        &self,
        writer: &mut client::MultiWriter<'_>,
        operation: &Operation,
    ) -> Result<(), ServerError> {
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
                self.check_acl(acl)?;
                let acl = client_acl(acl);
                let options = client_mode(*mode).with_acls(acl.as_slice().into());
                writer.add_create(path, data, &options)
            }
            Operation::SetData {
                path,
                data,
                version,
            } => writer.add_set_data(path, data, *version),
            Operation::Delete { path, version } => writer.add_delete(path, *version),
        };
        added.map_err(classify)
    }
}

/// What one operation of a transaction did.
fn outcome(result: client::MultiWriteResult) -> Result<Outcome, TransactionError> {
    match result {
        client::MultiWriteResult::Check => Ok(Outcome::Checked),
        client::MultiWriteResult::Delete => Ok(Outcome::Deleted),
        client::MultiWriteResult::Create { path, stat } => Ok(Outcome::Created(Created {
            path,
            stat: stat_of(stat),
        })),
        client::MultiWriteResult::SetData { stat } => Ok(Outcome::DataSet(stat_of(stat))),
        other => Err(TransactionError {
            operation: None,
            error: ServerError::outcome_unknown(format!(
                "unexpected result in the reply: {other:?}"
            )),
        }),
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
            // After the end of the session, the watcher would wait for ever.
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

    fn orders_events(&self) -> bool {
        !self.watched.was_full()
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
        let acl = client_acl(acl);
        let options = client_mode(mode).with_acls(acl.as_slice().into());
        let reply = self.client.create(path, data, &options);
        async move {
            let (stat, sequence) = understood(reply).await.map_err(classify)?;
            let path = match sequence.into_i64() {
                number if number < 0 && !mode.is_sequential() => path.to_owned(),
                _ => format!("{path}{sequence}"),
            };
            Ok(Created {
                path,
                stat: stat_of(stat),
            })
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
        let Some(place) = self.place(Kind::Children, path) else {
            let names = self.list(path);
            return async move { Ok((names.await?, self.pause())) }.boxed();
        };
        let reply = self.client.list_and_watch_children(path);
        async move {
            let (children, watcher) = understood(reply).await.map_err(classify)?;
            Ok((children, keeping(place, watch(watcher))))
        }
        .boxed()
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        let reply = self.client.get_data(path);
        async move {
            let (data, stat) = understood(reply).await.map_err(classify)?;
            Ok((data, stat_of(stat)))
        }
        .boxed()
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
        let reply = self.client.get_and_watch_data(path);
        async move {
            let (data, stat, watcher) = understood(reply).await.map_err(classify)?;
            let watch = keeping(place, watch(watcher));
            Ok((data, stat_of(stat), watch))
        }
        .boxed()
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        let Some(place) = self.place(Kind::Existence, path) else {
            let stat = answer(self.client.check_stat(path));
            return async move { Ok((stat.await?.map(stat_of), self.pause())) }.boxed();
        };
        let reply = self.client.check_and_watch_stat(path);
        async move {
            let (stat, watcher) = understood(reply).await.map_err(classify)?;
            Ok((stat.map(stat_of), keeping(place, watch(watcher))))
        }
        .boxed()
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        let mut writer = self.client.new_multi_writer();
        for (index, operation) in operations.iter().enumerate() {
            if let Err(error) = self.add(&mut writer, operation) {
                let operation = Some(index);
                return std::future::ready(Err(TransactionError { operation, error })).boxed();
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
            results.into_iter().map(outcome).collect()
        }
        .boxed()
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        let mut reader = self.client.new_multi_reader();
        for path in paths {
            if let Err(error) = reader.add_get_data(path) {
                return std::future::ready(Err(classify(error))).boxed();
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

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        answer(self.client.sync(path))
    }
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

/// Turns a panic of the client library into an error with an unknown outcome.
///
/// The client library panics if a reply is too short.
async fn understood<T, E: From<client::Error>>(
    reply: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let reply = AssertUnwindSafe(reply).catch_unwind().await;
    reply.unwrap_or_else(|_| {
        let problem = "a reply that cannot be decoded".to_owned();
        Err(client::Error::UnexpectedError(problem).into())
    })
}
