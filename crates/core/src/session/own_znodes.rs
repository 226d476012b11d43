//! The znodes that a session owns, as far as this process knows them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;

use crate::server::ensemble::{Operation, ServerSession};
use crate::server::error::ServerError;
use crate::sync::lock;

/// The list of the znodes that a session owns.
#[derive(Debug, Default)]
pub(crate) struct OwnZnodes(Mutex<BTreeMap<Arc<str>, Keepers>>);

/// The entries of one znode in the list.
#[derive(Debug)]
struct Keepers {
    number: usize,
    demand: Option<Operation>,
}

/// A znode of the session.
#[derive(Clone, Debug)]
pub(crate) struct OwnZnode {
    /// The path of the znode. If it ends with `-`, the server appends a number to it.
    pub(crate) path: Arc<str>,
    /// The condition for the deletion, if other sessions create znodes of the same name.
    pub(crate) demand: Option<Operation>,
}

/// An entry in the list. A drop removes the entry.
#[derive(Debug)]
pub(crate) struct Listed {
    znodes: Arc<OwnZnodes>,
    path: Arc<str>,
}

impl OwnZnodes {
    /// Lists a znode until the entry is dropped.
    pub(crate) fn list(self: &Arc<Self>, path: Arc<str>, demand: Option<Operation>) -> Listed {
        let none = Keepers { number: 0, demand };
        lock(&self.0).entry(path.clone()).or_insert(none).number += 1;
        let znodes = self.clone();
        Listed { znodes, path }
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// All znodes that are listed now.
    pub(crate) fn all(&self) -> Vec<OwnZnode> {
        let znodes = lock(&self.0);
        let own = znodes.iter().map(|(path, keepers)| OwnZnode {
            path: path.clone(),
            demand: keepers.demand.clone(),
        });
        own.collect()
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut znodes = lock(&self.znodes.0);
        if let Some(keepers) = znodes.get_mut(&self.path) {
            keepers.number -= 1;
            if keepers.number == 0 {
                znodes.remove(&self.path);
            }
        }
    }
}

/// Deletes the znodes of a session that is being closed.
///
/// Does not retry. The end of the session deletes the znodes that are left.
pub(crate) async fn delete_all(server: &dyn ServerSession, znodes: &[OwnZnode]) {
    let deletions = znodes.iter().map(|znode| delete(server, znode));
    let results = join_all(deletions).await;
    for error in results.into_iter().filter_map(Result::err) {
        tracing::debug!(%error, "a znode was not deleted when its session was closed");
    }
}

async fn delete(server: &dyn ServerSession, znode: &OwnZnode) -> Result<(), ServerError> {
    let path = &*znode.path;
    if let Some(demand) = &znode.demand {
        let delete = Operation::Delete {
            path: path.to_owned(),
            version: None,
        };
        let done = server.transact(&[delete, demand.clone()]).await;
        return done.map(drop).map_err(|refused| refused.error);
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
