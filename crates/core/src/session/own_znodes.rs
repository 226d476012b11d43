//! The znodes that a session owns, as far as this process knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures_util::future::{join, join_all};

use crate::server::ensemble::ServerSession;
use crate::server::error::{Refusal, ServerError};
use crate::session::proof::commit_nothing;
use crate::session::writes::Writes;
use crate::sync::lock;

/// The list of the znodes that a session owns, and the writes that are about to be sent under them.
#[derive(Debug, Default)]
pub(crate) struct OwnZnodes {
    /// The number of entries of each znode.
    listed: Mutex<BTreeMap<OwnZnode, usize>>,
    writes: Arc<Writes>,
}

/// A znode of the session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnZnode {
    /// The path of the znode. If it ends with `-`, the server appends a number to it.
    pub(crate) path: Arc<str>,
    /// What the data of the znode begins with. Set if other clients create znodes of the same name.
    pub(crate) identity: Option<Arc<[u8]>>,
}

/// An entry in the list. A drop removes the entry.
#[derive(Debug)]
pub(crate) struct Listed {
    znodes: Arc<OwnZnodes>,
    znode: OwnZnode,
}

impl OwnZnodes {
    /// Lists a znode until the entry is dropped.
    pub(crate) fn list(self: &Arc<Self>, path: Arc<str>, identity: Option<Arc<[u8]>>) -> Listed {
        let znode = OwnZnode { path, identity };
        *lock(&self.listed).entry(znode.clone()).or_default() += 1;
        let znodes = self.clone();
        Listed { znodes, znode }
    }

    /// The guarded writes under the holds of these znodes.
    pub(crate) fn writes(&self) -> &Arc<Writes> {
        &self.writes
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.listed).is_empty()
    }

    /// All znodes that are listed now.
    pub(crate) fn all(&self) -> Vec<OwnZnode> {
        lock(&self.listed).keys().cloned().collect()
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut znodes = lock(&self.znodes.listed);
        if let Some(number) = znodes.get_mut(&self.znode) {
            *number -= 1;
            if *number == 0 {
                znodes.remove(&self.znode);
            }
        }
    }
}

/// Deletes the znodes of a session that is being closed, and returns those that may be left.
///
/// Does not retry.
pub(crate) async fn delete_all(
    writes: &Writes,
    server: &dyn ServerSession,
    znodes: &[OwnZnode],
) -> Vec<OwnZnode> {
    let mut sought: BTreeMap<&str, Vec<&OwnZnode>> = BTreeMap::new();
    let mut known = Vec::new();
    for znode in znodes {
        match znode.path.rsplit_once('/') {
            Some((directory, name)) if name.ends_with('-') => {
                sought.entry(directory).or_default().push(znode);
            }
            _ => known.push(async move { (vec![znode], delete(writes, server, znode).await) }),
        }
    }
    let sought = sought.into_iter().map(|(directory, znodes)| async move {
        let deleted = delete_sought(server, directory, &znodes).await;
        (znodes, deleted)
    });
    let (known, sought) = join(join_all(known), join_all(sought)).await;
    let left = known
        .into_iter()
        .chain(sought)
        .filter_map(|(znodes, deleted)| {
            let error = deleted.err().filter(|error| !error.is(Refusal::NoNode))?;
            tracing::debug!(%error, "a znode was not deleted when its session was closed");
            Some(znodes)
        });
    left.flatten().cloned().collect()
}

/// Sends the deletions of znodes whose answers nobody will hear, and returns the others.
///
/// The others have to be looked for, or may belong to another client by now.
pub(crate) fn delete_unheard(server: &dyn ServerSession, znodes: Vec<OwnZnode>) -> Vec<OwnZnode> {
    let is_known = |znode: &OwnZnode| znode.identity.is_none() && !znode.path.ends_with('-');
    let (known, others): (Vec<_>, Vec<_>) = znodes.into_iter().partition(is_known);
    for znode in known {
        // The request is sent by the call.
        drop(server.delete(&znode.path));
    }
    others
}

async fn delete(
    writes: &Writes,
    server: &dyn ServerSession,
    znode: &OwnZnode,
) -> Result<(), ServerError> {
    let path = &*znode.path;
    if let Some(identity) = &znode.identity {
        writes.until_sent(path).await;
        return delete_shared(server, path, identity).await;
    }
    server.delete(path).await
}

/// Deletes the znodes of a directory whose paths begin with those of these znodes.
///
/// The directory is empty for the root.
async fn delete_sought(
    server: &dyn ServerSession,
    directory: &str,
    znodes: &[&OwnZnode],
) -> Result<(), ServerError> {
    let prefixes: BTreeSet<&str> = znodes.iter().map(|znode| &*znode.path).collect();
    let listed = if directory.is_empty() { "/" } else { directory };
    let names = server.list(listed).await?;
    let paths = names.iter().map(|name| format!("{directory}/{name}"));
    // No prefix begins with another one: all are as long as an identity.
    let own = paths.filter(|path| {
        let before = prefixes.range(..=path.as_str()).next_back();
        before.is_some_and(|prefix| path.starts_with(prefix))
    });
    let deletions = own.map(|path| async move { server.delete(&path).await });
    let deleted = join_all(deletions).await;
    let is_left = |error: &ServerError| !error.is(Refusal::NoNode);
    let error = deleted.into_iter().filter_map(Result::err).find(is_left);
    error.map_or(Ok(()), Err)
}

/// Deletes a znode of the session, unless the znode of another client stands in its place.
async fn delete_shared(
    server: &dyn ServerSession,
    path: &str,
    identity: &[u8],
) -> Result<(), ServerError> {
    // The server has then applied every earlier deletion, so the read does not show a znode that
    // has gone.
    commit_nothing(server).await?;
    let (data, _) = server.get(path).await?;
    match data.starts_with(identity) {
        true => server.delete(path).await,
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::session::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn unheard_deletions_are_of_znodes_that_nobody_else_can_own() {
        let (live, script) = Scripted::open(Duration::from_millis(1));
        let znode = |path: &str, identity: Option<Arc<[u8]>>| OwnZnode {
            path: path.into(),
            identity,
        };
        let known = znode("/lock/me-0000000001", None);
        let (doubtful, shared) = (
            znode("/lock/me-", None),
            znode("/one", Some(Arc::from(*b"me"))),
        );
        let all = vec![known, doubtful.clone(), shared.clone()];
        let left = delete_unheard(&*live.server().expect("it is open"), all);
        assert_eq!(left, [doubtful, shared]);
        assert_eq!(script.deletions(), ["/lock/me-0000000001"]);
    }
}
