//! Servers that run already, and that a check does not control.

use std::io;

use futures_util::future::{BoxFuture, try_join_all};
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_core::{Ensemble, NodePath, Session, ZookeeperEnsemble};

use super::checked_server::CheckedServer;
use super::promise::{Kept, text};
use crate::error::Error;
use crate::four_letter::PATIENCE;
use crate::handshake;
use crate::proxy::Proxy;

/// Servers that run already, of any kind, with other clients or without.
///
/// A [`Proxy`] before each server takes the place of a pause: the check controls nothing but its own
/// connections. The znodes are below one directory, which [`connect`](Self::connect) creates and
/// [`remove`](Self::remove) deletes.
///
/// It has no TLS and no credentials.
#[derive(Debug)]
pub struct RunningEnsemble {
    proxies: Vec<Proxy>,
    servers: Vec<String>,
    chroot: String,
    directory: NodePath,
    expires_sessions: bool,
}

impl RunningEnsemble {
    /// Connects to the servers of a connect string (`host:port,host:port/chroot`), and creates the
    /// directory.
    ///
    /// # Errors
    ///
    /// [`Error::ConnectString`] if it is none, [`Error::Unanswered`] if no server answers, and
    /// [`Error::Directory`] if the directory exists or cannot be created.
    pub async fn connect(
        connect_string: &str,
        directory: NodePath,
    ) -> Result<RunningEnsemble, Error> {
        let ensemble = ZookeeperEnsemble::new(connect_string);
        let ensemble = ensemble.map_err(|_| Error::ConnectString {
            value: connect_string.to_owned(),
        })?;
        let facts = ensemble.facts();
        let servers = facts.servers.clone();
        let proxies = try_join_all(servers.iter().map(Proxy::start)).await;
        let mut running = RunningEnsemble {
            proxies: proxies.map_err(Error::Proxy)?,
            chroot: facts.chroot.trim_end_matches('/').to_owned(),
            servers,
            directory,
            expires_sessions: false,
        };
        running.expires_sessions = running.try_to_expire().await?;
        running.create().await?;
        Ok(running)
    }

    /// True if the servers make the passwords of sessions as Apache's server does.
    async fn try_to_expire(&self) -> Result<bool, Error> {
        let connect_string = self.connect_string();
        let session = Session::connect(&connect_string).await;
        let session = session.map_err(|error| Error::Unanswered {
            address: self.servers.join(","),
            question: "a session's handshake",
            source: io::Error::other(error),
        })?;
        let expired = match session.id() {
            Some(id) => self.expire(id).await.is_ok(),
            None => false,
        };
        session.close().await;
        Ok(expired)
    }

    async fn create(&self) -> Result<(), Error> {
        let client = Client::connect(&self.connect_string()).await;
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let created = match &client {
            Ok(client) => client
                .create(self.directory.as_str(), b"", &options)
                .await
                .map(drop),
            Err(error) => Err(error.clone()),
        };
        created.map_err(|error| self.failed(&error))
    }

    fn failed(&self, problem: &zookeeper_client::Error) -> Error {
        Error::Directory {
            path: self.directory.to_string(),
            problem: problem.to_string(),
        }
    }

    /// The directory of all znodes.
    pub fn directory(&self) -> &NodePath {
        &self.directory
    }

    /// Deletes the directory, with all below.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`] if something is left.
    pub async fn remove(self) -> Result<(), Error> {
        let client = Client::connect(&self.connect_string()).await;
        let client = client.map_err(|error| self.failed(&error))?;
        let mut paths = vec![self.directory.to_string()];
        let mut place = 0;
        while let Some(path) = paths.get(place).cloned() {
            match client.list_children(&path).await {
                Ok(names) => paths.extend(names.iter().map(|name| format!("{path}/{name}"))),
                Err(zookeeper_client::Error::NoNode) => {}
                Err(error) => return Err(self.failed(&error)),
            }
            place += 1;
        }
        for path in paths.iter().rev() {
            match client.delete(path, None).await {
                Ok(()) | Err(zookeeper_client::Error::NoNode) => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Ok(())
    }
}

impl CheckedServer for RunningEnsemble {
    fn connect_string(&self) -> String {
        let proxies = self.proxies.iter().map(Proxy::connect_string);
        let proxies: Vec<String> = proxies.collect();
        format!("{}{}", proxies.join(","), self.chroot)
    }

    fn pause(&self) -> Kept {
        self.proxies.iter().for_each(Proxy::freeze);
        Ok(())
    }

    fn resume(&self) -> Kept {
        self.proxies.iter().for_each(Proxy::thaw);
        Ok(())
    }

    fn expire(&self, session: SessionId) -> BoxFuture<'_, Kept> {
        Box::pin(async move {
            let ended = handshake::end_session(&self.servers[0], session.0, PATIENCE);
            ended.await.map_err(text)
        })
    }

    fn expires_sessions(&self) -> bool {
        self.expires_sessions
    }

    fn is_ours(&self) -> bool {
        false
    }
}
