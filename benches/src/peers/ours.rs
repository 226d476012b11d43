//! These recipes at work.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use futures_util::future::FutureExt;
use zookeeper_recipes_core::{ConnectOptions, Recipe, Session};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;

use crate::library::{Kind, Library, Lock, PERMITS, Release, nothing_to_release, nth};

/// How many times in a row the tasks of a process may pass a lock on locally.
pub(crate) const LOCAL_HANDOVERS: u32 = 100;

/// These recipes.
pub(crate) struct Ours {
    connect_string: String,
    options: ConnectOptions,
    sessions: Vec<Session>,
}

struct OfRecipe(Box<dyn Recipe>);

struct Dropped(ExclusiveLock);

struct FailedTry(ExclusiveLock);

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

    async fn lock(
        &mut self,
        kind: Kind,
        session: usize,
        path: &str,
    ) -> anyhow::Result<Arc<dyn Lock>> {
        let Ours {
            connect_string,
            options,
            sessions,
        } = self;
        let session = nth(sessions, session, || async {
            Ok(Session::connect_with(connect_string, options.clone()).await?)
        })
        .await?;
        let recipe: Box<dyn Recipe> = match kind {
            Kind::Lock => Box::new(ExclusiveLock::new(session, path)?),
            Kind::Shared => {
                let options = LockOptions::new().local(LOCAL_HANDOVERS);
                Box::new(ExclusiveLock::with_options(session, path, options)?)
            }
            Kind::Read => Box::new(RwLock::new(session, path)?.read().clone()),
            Kind::Write => Box::new(RwLock::new(session, path)?.write().clone()),
            Kind::Semaphore => Box::new(Semaphore::new(session, path, PERMITS)?),
            Kind::Dropped => return Ok(Arc::new(Dropped(ExclusiveLock::new(session, path)?))),
            Kind::Try => return Ok(Arc::new(FailedTry(ExclusiveLock::new(session, path)?))),
        };
        Ok(Arc::new(OfRecipe(recipe)))
    }

    async fn close(&mut self) {
        for session in self.sessions.drain(..) {
            session.close().await;
        }
    }
}

#[async_trait]
impl Lock for OfRecipe {
    async fn acquire(&self) -> anyhow::Result<Release> {
        let hold = self.0.acquire().await?;
        Ok(async move { Ok(hold.release().await?) }.boxed())
    }
}

#[async_trait]
impl Lock for Dropped {
    async fn acquire(&self) -> anyhow::Result<Release> {
        let hold = self.0.acquire().await?;
        Ok(async move {
            drop(hold);
            Ok(())
        }
        .boxed())
    }
}

#[async_trait]
impl Lock for FailedTry {
    async fn acquire(&self) -> anyhow::Result<Release> {
        match self.0.try_acquire().await? {
            None => Ok(nothing_to_release()),
            Some(_) => bail!("acquired what another session holds"),
        }
    }
}
