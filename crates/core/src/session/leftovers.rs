//! The znodes that a process may leave in a session that stays open, and their deletion.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::events::TARGET;
use crate::hold::open_session::OpenSession;
use crate::hold::own_znode::{ContenderName, Kind};
use crate::hold::search::owned;
use crate::live::live_session::LiveSession;
use crate::retry::Backoff;
use crate::server::ensemble::ServerSession;
use crate::server::error::{ServerError, if_there};

/// The znodes of a session that this process has closed, and that its user keeps open.
///
/// If this is dropped, the deletions of the rest are sent, and the znodes that may stay are reported.
pub(crate) struct Leftovers {
    live: Arc<LiveSession>,
    server: Arc<ServerSession>,
    znodes: Vec<Kind>,
}

impl Leftovers {
    /// All znodes that the session may own.
    pub(crate) fn of(open: &OpenSession, server: Arc<ServerSession>) -> Leftovers {
        Leftovers {
            live: open.live.clone(),
            server,
            znodes: open.znodes.registered(),
        }
    }

    /// Deletes the znodes, and retries for at most the session timeout. Then it reports the rest.
    pub(crate) async fn delete_all(mut self) {
        let (limit, mut backoff) = (self.live.timeout, Backoff::default());
        let until_deleted = async {
            while !self.delete_once().await {
                backoff.wait().await;
            }
        };
        let _ = timeout(limit, until_deleted).await;
        self.report();
        self.znodes.clear();
    }

    /// Deletes the znodes once, and keeps those that may be left. True if none may be.
    async fn delete_once(&mut self) -> bool {
        let deletions = self.znodes.iter().map(|kind| delete(&self.server, kind));
        let mut deleted = join_all(deletions).await.into_iter();
        self.znodes.retain(|_| match deleted.next().map(if_there) {
            Some(Err(error)) => {
                tracing::debug!(
                    target: TARGET, %error, "a znode was not deleted when its session was closed"
                );
                true
            }
            _ => false,
        });
        self.znodes.is_empty()
    }

    fn report(&self) {
        let paths = self.znodes.iter().map(|kind| match kind {
            Kind::Contender(name) => match name.path.get() {
                Some(path) => path.clone(),
                None => name.identity.path(name.directory.as_str(), ""),
            },
            Kind::Named(named) => named.path.clone(),
        });
        let (session, znodes) = (self.live.id, paths.collect::<Vec<String>>());
        if !znodes.is_empty() {
            tracing::warn!(target: TARGET, %session, ?znodes, "znodes left");
        }
    }
}

impl Drop for Leftovers {
    /// Sends the deletions without waiting for the answers.
    ///
    /// The other znodes have no known name, or may belong to another client by now.
    fn drop(&mut self) {
        self.znodes.retain(|kind| match kind.unique_path() {
            Some(path) => {
                // The request is sent by the call.
                drop(self.server.delete(path));
                false
            }
            None => true,
        });
        self.report();
    }
}

/// Deletes a znode of the session.
///
/// Unlike [`Searches`](crate::hold::search::Searches), nothing sends a commit before the lists. A
/// session that is closed here and stays open at the server is that of a client. The adapter commits
/// a znode after each reconnect of the client.
async fn delete(server: &Arc<ServerSession>, kind: &Kind) -> Result<(), ServerError> {
    match kind {
        // Somebody may have deleted the znode, and the next holder's may have its name.
        Kind::Named(named) => named.delete(server, false).await.map(drop),
        Kind::Contender(ContenderName {
            directory,
            identity,
            path,
        }) => {
            if let Some(path) = path.get() {
                return server.delete(path).await;
            }
            let (names, prefix) = (server.list(directory.as_str()).await?, identity.prefix());
            let own = names.iter().filter(|name| name.starts_with(&prefix));
            let own = own.map(|name| format!("{directory}/{name}")).collect();
            for (path, _) in owned(server, own).await? {
                if_there(server.delete(&path).await)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/leftovers.rs"]
mod tests;
