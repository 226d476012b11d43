//! The znodes that a process may leave in a session that stays open, and their deletion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::{FutureExt, join_all};

use crate::events::{session as events, znode as znode_events};
use crate::hold::own_znode::{Named, SessionZnodes};
use crate::hold::search::{or_root, owned};
use crate::live::live_session::LiveSession;
use crate::retry::Backoff;
use crate::server::ensemble::ServerSession;
use crate::server::error::{ServerError, if_there};

/// Znodes of a session that this process has closed, and that its user keeps open.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// A path that ends with `-` is a prefix: the server has appended a number.
    pub(crate) paths: Vec<Arc<str>>,
    /// The znodes that recipes delete in their own way.
    pub(crate) named: Vec<Arc<Named>>,
}

impl Leftovers {
    /// All znodes that the session may own.
    pub(crate) fn of(znodes: &SessionZnodes) -> Leftovers {
        Leftovers {
            paths: znodes.paths(),
            named: znodes.all_named(),
        }
    }

    /// Deletes these znodes of a session that stays open at the server, and retries until each is
    /// deleted.
    ///
    /// If the future is dropped, `paths` and `named` list the znodes that may be left.
    pub(crate) async fn delete_all(&mut self, server: &Arc<dyn ServerSession>) {
        let mut backoff = Backoff::default();
        loop {
            self.delete(server).await;
            if self.paths.is_empty() && self.named.is_empty() {
                return;
            }
            backoff.wait().await;
        }
    }

    /// Deletes these znodes once, and keeps those that may be left.
    pub(crate) async fn delete(&mut self, server: &Arc<dyn ServerSession>) {
        let mut unnumbered: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
        let mut deletions = Vec::new();
        for path in &self.paths {
            match path.rsplit_once('/') {
                Some((directory, name)) if name.ends_with('-') => {
                    unnumbered.entry(directory).or_default().push(path.clone());
                }
                _ => deletions.push(paths_left(server.delete(path), vec![path.clone()]).boxed()),
            }
        }
        for (directory, prefixes) in unnumbered {
            let deleted = delete_unnumbered(&**server, directory, prefixes.clone());
            deletions.push(paths_left(deleted, prefixes).boxed());
        }
        for znode in &self.named {
            // Somebody may have deleted the znode, and the next holder's may have its name.
            let deleted = async { znode.delete(server, false).await };
            deletions.push(paths_left(deleted, Vec::new()).boxed());
        }
        let left = join_all(deletions).await.concat();
        self.paths = left;
        self.named.retain(|znode| znode.may_exist());
    }

    /// Sends the deletions of znodes without waiting for the answers, and keeps the others.
    ///
    /// The others have no known name, or may belong to another client by now.
    pub(crate) fn send_deletions(&mut self, server: &dyn ServerSession) {
        self.paths.retain(|path| {
            let is_unnumbered = path.ends_with('-');
            if !is_unnumbered {
                // The request is sent by the call.
                drop(server.delete(path));
            }
            is_unnumbered
        });
    }

    pub(crate) fn report(&self, live: &LiveSession) {
        let named = self.named.iter().map(|znode| znode.path());
        let paths = self.paths.iter().map(|path| &**path);
        let paths: Vec<&str> = paths.chain(named).collect();
        if !paths.is_empty() {
            events::left(live.id, &paths);
        }
    }
}

/// Returns the paths of these znodes if their deletion fails.
async fn paths_left<T>(
    deletion: impl Future<Output = Result<T, ServerError>>,
    paths: Vec<Arc<str>>,
) -> Vec<Arc<str>> {
    match if_there(deletion.await) {
        Ok(_) => Vec::new(),
        Err(error) => {
            znode_events::not_deleted(&error);
            paths
        }
    }
}

/// Deletes the session's znodes in a directory whose paths begin with these prefixes.
///
/// For the root, `directory` is the empty text.
///
/// Unlike [`Searches`](crate::hold::search::Searches), this function sends no commit before the
/// list. A session that is closed here and stays open at the server is that of a client. The
/// adapter commits a znode after each reconnect of the client.
async fn delete_unnumbered(
    server: &dyn ServerSession,
    directory: &str,
    prefixes: Vec<Arc<str>>,
) -> Result<(), ServerError> {
    let prefixes: BTreeSet<&str> = prefixes.iter().map(|prefix| &**prefix).collect();
    let names = server.list(or_root(directory)).await?;
    let paths = names.iter().map(|name| format!("{directory}/{name}"));
    // No prefix begins with another one: all are as long as an identity.
    let own = paths.filter(|path| {
        let before = prefixes.range(..=path.as_str()).next_back();
        before.is_some_and(|prefix| path.starts_with(prefix))
    });
    let own = owned(server, own.collect()).await?;
    let deletions = own
        .iter()
        .map(|node| async { if_there(server.delete(&node.path).await) });
    let deleted: Result<Vec<_>, _> = join_all(deletions).await.into_iter().collect();
    deleted.map(drop)
}

#[cfg(test)]
#[path = "../../tests/unit/leftovers.rs"]
mod tests;
