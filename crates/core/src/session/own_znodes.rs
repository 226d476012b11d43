//! The znodes that a session owns, as far as this process knows them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;

use crate::server::ensemble::{Operation, ServerSession};
use crate::server::error::{Refusal, ServerError};
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
    /// Set if other clients create znodes of the same name.
    pub(crate) shared: Option<Shared>,
}

/// What tells a znode of the session from the znodes of other clients with the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shared {
    /// The data of the znode begins with it.
    pub(crate) identity: Arc<[u8]>,
    /// The path of a znode that stands as long as the session.
    pub(crate) guard: Arc<str>,
}

/// An entry in the list. A drop removes the entry.
#[derive(Debug)]
pub(crate) struct Listed {
    znodes: Arc<OwnZnodes>,
    znode: OwnZnode,
}

impl OwnZnodes {
    /// Lists a znode until the entry is dropped.
    pub(crate) fn list(self: &Arc<Self>, path: Arc<str>, shared: Option<Shared>) -> Listed {
        let znode = OwnZnode { path, shared };
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
    let deletions = znodes.iter().map(|znode| delete(writes, server, znode));
    let results = join_all(deletions).await;
    let left = znodes.iter().zip(results).filter_map(|(znode, result)| {
        let error = result.err().filter(|error| !error.is(Refusal::NoNode))?;
        tracing::debug!(%error, "a znode was not deleted when its session was closed");
        Some(znode.clone())
    });
    left.collect()
}

/// Sends the deletions of znodes whose answers nobody will hear, and returns the others.
///
/// The others have to be looked for, or may belong to another client by now.
pub(crate) fn delete_unheard(server: &dyn ServerSession, znodes: Vec<OwnZnode>) -> Vec<OwnZnode> {
    let is_known = |znode: &OwnZnode| znode.shared.is_none() && !znode.path.ends_with('-');
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
    if let Some(shared) = &znode.shared {
        writes.until_sent(path).await;
        return delete_shared(server, path, shared).await;
    }
    if !path.ends_with('-') {
        return server.delete(path).await;
    }
    let (directory, prefix) = path.rsplit_once('/').unwrap_or_default();
    for name in server.list(directory).await? {
        if name.starts_with(prefix) {
            server.delete(&format!("{directory}/{name}")).await?;
        }
    }
    Ok(())
}

/// Deletes a znode of the session, unless the znode of another client stands in its place.
async fn delete_shared(
    server: &dyn ServerSession,
    path: &str,
    shared: &Shared,
) -> Result<(), ServerError> {
    let stands = Operation::Check {
        path: shared.guard.to_string(),
        version: None,
    };
    // Once this transaction is answered, the server has applied every earlier deletion, so the read
    // does not show a znode that has gone.
    let applied = server.transact(std::slice::from_ref(&stands)).await;
    applied.map_err(|refused| refused.error)?;
    let (data, _) = server.get(path).await?;
    if !data.starts_with(&shared.identity) {
        return Ok(());
    }
    let delete = Operation::Delete {
        path: path.to_owned(),
        version: None,
    };
    let done = server.transact(&[delete, stands]).await;
    done.map(drop).map_err(|refused| refused.error)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::session::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn unheard_deletions_are_of_znodes_that_nobody_else_can_own() {
        let (live, script) = Scripted::open(Duration::from_millis(1));
        let znode = |path: &str, shared: Option<Shared>| OwnZnode {
            path: path.into(),
            shared,
        };
        let shared = Shared {
            identity: Arc::from(*b"me"),
            guard: "/guard".into(),
        };
        let known = znode("/lock/me-0000000001", None);
        let (doubtful, shared) = (znode("/lock/me-", None), znode("/one", Some(shared)));
        let all = vec![known, doubtful.clone(), shared.clone()];
        let left = delete_unheard(&*live.server().expect("it is open"), all);
        assert_eq!(left, [doubtful, shared]);
        assert_eq!(script.deletions(), ["/lock/me-0000000001"]);
    }
}
