//! Finds the znodes of this process by their identity.
//!
//! A list names all children of a directory. If each of many attempts listed its directory, the
//! cost would grow with the square of their number, and the probes of the session would wait behind
//! the answers. So the attempts of a session share the list of one directory.

use std::collections::BTreeMap;
use std::iter::zip;
use std::sync::{Arc, Weak};

use futures_util::future::FutureExt;

use crate::contender::Identity;
use crate::live::live_session::LiveSession;
use crate::retry::retry;
use crate::server::ensemble::{ServerSession, Stat};
use crate::server::error::{ServerError, if_there};
use crate::sync::{Mutex, SharedWork, lock};

/// The searches of a session that are under way: the list of each directory. Only its callers keep it.
#[derive(Default)]
pub(crate) struct Searches(Mutex<BTreeMap<String, Weak<SharedSearch>>>);

/// The names of a directory's children, sorted.
type SharedSearch = SharedWork<Result<Arc<[String]>, ServerError>>;

impl Searches {
    /// The znodes of this identity that the session owns, read after a commit.
    ///
    /// The method sends what [`own_paths`](Self::own_paths) sends, and a read if there is such a
    /// znode.
    pub(crate) async fn own_nodes(
        &self,
        live: &Arc<LiveSession>,
        directory: &str,
        identity: &Identity,
    ) -> Result<Vec<(String, Stat)>, ServerError> {
        let found = || async {
            let paths = self.own_paths(live, directory, identity).await?;
            owned(&*live.server()?, paths).await
        };
        retry(ServerError::may_pass, found).await
    }

    /// The paths of the znodes of this identity, of any owner, read after a commit.
    ///
    /// The list is sent after the call, and a session's writes are applied in their order. So the
    /// list shows the znode of each create whose outcome is unknown at the call, or the create is
    /// never applied. A `sync` would not do: a server that has given up on a create may apply it
    /// later.
    ///
    /// The method sends a [proof](crate::server::ensemble::ServerSession::commit_noop) and a list, or
    /// shares those of other callers.
    async fn own_paths(
        &self,
        live: &Arc<LiveSession>,
        directory: &str,
        identity: &Identity,
    ) -> Result<Vec<String>, ServerError> {
        let of_directory = self.of(directory);
        // A list that is under way may have been sent before the call. The next one is not.
        let mut is_later = false;
        let names = loop {
            let list = of_directory.join(|| {
                is_later = true;
                list_after_commit(live.clone(), directory.to_owned()).boxed()
            });
            let names = list.await?;
            if is_later {
                break names;
            }
            is_later = true;
        };
        let prefix = identity.prefix();
        let first = names.partition_point(|name| *name < prefix);
        let rest = names.iter().skip(first);
        let own = rest.take_while(|name| name.starts_with(&prefix));
        Ok(own.map(|name| format!("{directory}/{name}")).collect())
    }

    /// The list of a directory.
    fn of(&self, directory: &str) -> Arc<SharedSearch> {
        let directories = &mut *lock(&self.0);
        let known = directories.get(directory).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            directories.retain(|_, list| list.strong_count() > 0);
            let list = Arc::default();
            directories.insert(directory.to_owned(), Arc::downgrade(&list));
            list
        })
    }
}

/// Lists the directory after a commit, and asks until an answer comes.
async fn list_after_commit(
    live: Arc<LiveSession>,
    directory: String,
) -> Result<Arc<[String]>, ServerError> {
    let list = || async {
        live.until_connected().await;
        let server = live.server()?;
        server.commit_noop().await?;
        let mut names = if_there(server.list(&directory).await)?.unwrap_or_default();
        names.sort_unstable();
        Ok(names.into())
    };
    retry(ServerError::may_pass, list).await
}

/// Reads the znodes at these paths. The result has the paths and the metadata of the session's own.
pub(crate) async fn owned(
    server: &ServerSession,
    paths: Vec<String>,
) -> Result<Vec<(String, Stat)>, ServerError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let nodes = server.get_each(&paths).await?;
    let owned = zip(paths, nodes).filter_map(|(path, node)| {
        let (_, stat) = node?;
        // Two copies of one virtual machine may draw the same identities.
        let is_own = stat.ephemeral_owner == server.id.0;
        is_own.then_some((path, stat))
    });
    Ok(owned.collect())
}

#[cfg(test)]
#[path = "../../tests/unit/search.rs"]
mod tests;
