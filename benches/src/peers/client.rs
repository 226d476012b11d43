//! The lock of `zookeeper-client` at work.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use futures_util::future::{FutureExt, join_all};
use zookeeper_client::{Acls, Client, CreateMode, LockOptions, LockPrefix};

use crate::library::{Kind, Library, Lock, Release, nth};

/// The file that pins every dependency's version.
const LOCKFILE: &str = include_str!("../../../Cargo.lock");

pub(crate) struct OfClient {
    connect_string: String,
    session_timeout: Duration,
    clients: Vec<Client>,
}

impl OfClient {
    pub(crate) fn new(connect_string: &str, session_timeout: Duration) -> OfClient {
        OfClient {
            connect_string: connect_string.to_owned(),
            session_timeout,
            clients: Vec::new(),
        }
    }
}

#[async_trait]
impl Library for OfClient {
    fn version(&self) -> String {
        let package = LOCKFILE.split("name = \"zookeeper-client\"").nth(1);
        let version = package.and_then(|package| package.split('"').nth(1));
        format!(
            "zookeeper-client {}",
            version.unwrap_or("of unknown version")
        )
    }

    async fn lock(&mut self, kind: Kind, session: usize, path: &str) -> anyhow::Result<Lock> {
        let OfClient {
            connect_string,
            session_timeout,
            clients,
        } = self;
        let client = nth(clients, session, || async {
            let connector = Client::connector().with_session_timeout(*session_timeout);
            Ok(connector.connect(connect_string).await?)
        })
        .await?;
        match kind {
            Kind::Lock | Kind::Dropped | Kind::Shared | Kind::Mutex => {
                let (client, path) = (client.clone(), path.to_owned());
                Ok(Arc::new(move || {
                    acquire(client.clone(), path.clone()).boxed()
                }))
            }
            Kind::Fresh | Kind::Read | Kind::Write | Kind::Semaphore | Kind::Try => {
                bail!("it has no {kind:?}")
            }
        }
    }

    async fn close(&mut self) {
        let states = self.clients.drain(..).map(|client| client.state_watcher());
        let states: Vec<_> = states.collect();
        join_all(states.into_iter().map(|mut state| async move {
            while !state.state().is_terminated() {
                state.changed().await;
            }
        }))
        .await;
    }
}

async fn acquire(client: Client, path: String) -> anyhow::Result<Release> {
    let prefix = LockPrefix::new_curator(&path, "lock-")?;
    let parents = CreateMode::Container.with_acls(Acls::anyone_all());
    let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents)?;
    let held = client.lock(prefix, b"", options).await?.into_owned();
    // The client deletes the znode in the background, and offers nothing to wait for.
    let release = async move {
        drop(held);
        Ok(())
    };
    Ok(release.boxed())
}
