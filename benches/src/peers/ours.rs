//! These recipes at work.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use futures_util::future::FutureExt;
use zookeeper_recipes_core::{ConnectOptions, Recipe, Session};
use zookeeper_recipes_lock::{ExclusiveLock, TaskGuard, TaskMutex};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

use crate::library::{Kind, Library, Lock, PERMITS, Release, nth};

/// These recipes.
pub(crate) struct Ours {
    connect_string: String,
    options: ConnectOptions,
    sessions: Vec<Session>,
}

impl Ours {
    pub(crate) fn new(connect_string: &str, session_timeout: Duration) -> Ours {
        Ours {
            connect_string: connect_string.to_owned(),
            options: ConnectOptions::new()
                .session_timeout(session_timeout)
                .connection_timeout(session_timeout),
            sessions: Vec::new(),
        }
    }
}

#[async_trait]
impl Library for Ours {
    fn version(&self) -> String {
        concat!("zookeeper-recipes ", env!("CARGO_PKG_VERSION")).to_owned()
    }

    async fn lock(&mut self, kind: Kind, session: usize, path: &str) -> anyhow::Result<Lock> {
        let Ours {
            connect_string,
            options,
            sessions,
        } = self;
        let session = nth(sessions, session, || async {
            Ok(Session::connect_with(connect_string, options.clone()).await?)
        })
        .await?;
        let recipe: Arc<dyn Recipe> = match kind {
            Kind::Fresh => {
                let (session, path) = (session.clone(), path.to_owned());
                return Ok(Arc::new(move || {
                    let lock = ExclusiveLock::new(&session, &*path);
                    async move { acquire(kind, Arc::new(lock?)).await }.boxed()
                }));
            }
            Kind::Mutex => {
                let mutex = TaskMutex::new(ExclusiveLock::new(session, path)?);
                return Ok(Arc::new(move || {
                    let mutex = mutex.clone();
                    let acquire = async move { Ok(released(mutex.acquire().await?)) };
                    acquire.boxed()
                }));
            }
            Kind::Lock | Kind::Dropped | Kind::Try | Kind::Shared => {
                Arc::new(ExclusiveLock::new(session, path)?)
            }
            Kind::Read => Arc::new(RwLock::new(session, path)?.read().clone()),
            Kind::Write => Arc::new(RwLock::new(session, path)?.write().clone()),
            Kind::Semaphore => Arc::new(Semaphore::new(session, path, PERMITS)?),
        };
        Ok(Arc::new(move || acquire(kind, recipe.clone()).boxed()))
    }

    async fn close(&mut self) {
        for session in self.sessions.drain(..) {
            session.close().await;
        }
    }
}

fn released(guard: TaskGuard) -> Release {
    async move { Ok(guard.release().await?) }.boxed()
}

async fn acquire(kind: Kind, recipe: Arc<dyn Recipe>) -> anyhow::Result<Release> {
    if kind == Kind::Try {
        return match recipe.try_acquire().await? {
            None => Ok(async { Ok(()) }.boxed()),
            Some(_) => bail!("acquired what another session holds"),
        };
    }
    let hold = recipe.acquire().await?;
    let release = async move {
        match kind {
            Kind::Dropped => drop(hold),
            _ => hold.release().await?,
        }
        Ok(())
    };
    Ok(release.boxed())
}
