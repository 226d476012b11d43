//! A session, as the recipes use it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::{oneshot, watch};
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Created, Operation, Outcome, Reply, Scope,
    ServerSession, SessionId, Stat, TransactionError, Watch,
};
use zookeeper_recipes_core::{Refusal, ServerError};

use crate::client::errors::{outcome_unknown, refused};
use crate::client::state::Settled;
use crate::run::shared::Shared;
use crate::wire::answer::Answer;
use crate::wire::connection::ClientId;
use crate::wire::request::Request;

/// A session of a simulated ensemble.
pub(super) struct SimulatedSession {
    pub(super) shared: Arc<Shared>,
    pub(super) client: ClientId,
    pub(super) id: SessionId,
    pub(super) timeout: Duration,
    pub(super) states: watch::Receiver<ConnectionState>,
    pub(super) own_identity: AuthId,
    pub(super) scope: Scope,
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
        path: Result<String, Refusal>,
        request: impl FnOnce(String) -> Request,
    ) -> Settling {
        match path {
            Ok(path) => self.ask(request(path)),
            Err(refusal) => futures_util::future::ready(Err(refused(None, refusal))).boxed(),
        }
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

    fn orders_events(&self) -> bool {
        true
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
        let path = self.scope.check_acl(acl).and_then(|()| {
            let is_sequential = mode.is_sequential();
            self.scope.path_below_root(path, is_sequential, "create")
        });
        let (data, acl) = (data.to_vec(), acl.to_vec());
        let settling = self.ask_at(path, |path| Request::Create {
            path,
            data,
            mode,
            acl,
        });
        async move {
            match settle(settling).await?.answer {
                Answer::Created(created) => Ok(self.scope.client_path(created)),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        let path = self.scope.path_below_root(path, false, "delete");
        let settling = self.ask_at(path, |path| Request::Delete { path });
        async move { settle(settling).await.map(|_| ()) }.boxed()
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        let settling = self.ask_at(self.scope.server_path(path, false), |path| Request::List {
            path,
            watch: false,
        });
        async move {
            match settle(settling).await?.answer {
                Answer::Children(names) => Ok(names),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        let settling = self.ask_at(self.scope.server_path(path, false), |path| Request::List {
            path,
            watch: true,
        });
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
        let settling = self.ask_at(self.scope.server_path(path, false), |path| Request::Get {
            path,
            watch: false,
        });
        async move {
            match settle(settling).await?.answer {
                Answer::Data(data, stat) => Ok((data, stat)),
                other => Err(unexpected(&other)),
            }
        }
        .boxed()
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        let settling = self.ask_at(self.scope.server_path(path, false), |path| Request::Get {
            path,
            watch: true,
        });
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
        let settling = self.ask_at(self.scope.server_path(path, false), |path| {
            Request::Exists { path }
        });
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
            match self.scope.operation(operation) {
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
                        Outcome::Created(created) => {
                            Outcome::Created(self.scope.client_path(created))
                        }
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
            match self.scope.server_path(path, false) {
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
        let settling = self.ask_at(self.scope.server_path(path, false), |path| Request::Sync {
            path,
        });
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
