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
use crate::server::ensemble::{Created, ServerSession};
use crate::server::error::{ServerError, if_there};
use crate::sync::{Mutex, SharedWork, lock};

/// The searches of a session that are under way.
#[derive(Default)]
pub(crate) struct Searches(Mutex<SearchState>);

#[derive(Default)]
struct SearchState {
    /// Counts the callers, and the searches when they are sent. So the numbers show which was
    /// first.
    last: u64,
    /// The list of each directory. Only its callers keep it.
    directories: BTreeMap<String, Weak<SharedSearch>>,
}

type SharedSearch = SharedWork<Result<SortedNames, ServerError>>;

/// The names of a directory's children, sorted.
#[derive(Clone)]
struct SortedNames {
    number: u64,
    names: Arc<[String]>,
}

impl Searches {
    /// The znodes of this identity that the session owns, read after a commit.
    ///
    /// The method sends what [`own_paths`](Self::own_paths) sends, and a read if there is such a
    /// znode.
    pub(crate) async fn own_nodes(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        directory: &str,
        identity: &Identity,
    ) -> Result<Vec<Created>, ServerError> {
        let found = || async {
            let paths = self.own_paths(live, directory, identity).await?;
            owned(&*live.server()?, paths).await
        };
        retry(ServerError::may_pass, found).await
    }

    /// The paths of the znodes of this identity, of any owner, read after a commit.
    ///
    /// The list is sent after the call, and a session's writes
    /// are applied in their order. So the list shows the znode of each create whose outcome is
    /// unknown at the call, or the create is never applied. A `sync` would not do: a server that
    /// has given up on a create may apply it later.
    ///
    /// The method sends a [proof](crate::server::ensemble::ServerSession::commit_noop) and a list, or
    /// shares those of other callers.
    async fn own_paths(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        directory: &str,
        identity: &Identity,
    ) -> Result<Vec<String>, ServerError> {
        let (asked, of_directory) = self.enter(directory);
        let list = loop {
            let begin =
                || list_after_commit(live.clone(), self.clone(), directory.to_owned()).boxed();
            let list = of_directory.join(begin).await?;
            if list.number > asked {
                break list;
            }
        };
        let prefix = identity.prefix();
        let first = list.names.partition_point(|name| *name < prefix);
        let rest = list.names.iter().skip(first);
        let own = rest.take_while(|name| name.starts_with(&prefix));
        Ok(own.map(|name| format!("{directory}/{name}")).collect())
    }

    fn next(&self) -> u64 {
        let mut searches = lock(&self.0);
        searches.last += 1;
        searches.last
    }

    /// The number of a caller, and the list of its directory.
    fn enter(&self, directory: &str) -> (u64, Arc<SharedSearch>) {
        let number = self.next();
        let searches = &mut *lock(&self.0);
        let known = searches.directories.get(directory).and_then(Weak::upgrade);
        let list = known.unwrap_or_else(|| {
            let directories = &mut searches.directories;
            directories.retain(|_, list| list.strong_count() > 0);
            let list = Arc::default();
            let kept = Arc::downgrade(&list);
            directories.insert(directory.to_owned(), kept);
            list
        });
        (number, list)
    }
}

/// Lists the directory after a commit, and asks until an answer comes.
async fn list_after_commit(
    live: Arc<LiveSession>,
    searches: Arc<Searches>,
    directory: String,
) -> Result<SortedNames, ServerError> {
    let list = || async {
        // Until then, all callers can share the list.
        live.until_connected().await;
        let server = live.server()?;
        let number = searches.next();
        server.commit_noop().await?;
        let mut names = if_there(server.list(&directory).await)?.unwrap_or_default();
        names.sort_unstable();
        let names = names.into();
        Ok(SortedNames { number, names })
    };
    retry(ServerError::may_pass, list).await
}

/// Reads the znodes at these paths, and returns those of the session.
pub(crate) async fn owned(
    server: &ServerSession,
    paths: Vec<String>,
) -> Result<Vec<Created>, ServerError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let nodes = server.get_each(&paths).await?;
    let owned = zip(paths, nodes).filter_map(|(path, node)| {
        let (_, stat) = node?;
        // Two copies of one virtual machine may draw the same identities.
        let is_own = stat.ephemeral_owner == server.id().0;
        is_own.then_some(Created { path, stat })
    });
    Ok(owned.collect())
}

#[cfg(test)]
#[path = "../../tests/unit/search.rs"]
mod tests;
