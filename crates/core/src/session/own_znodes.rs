//! The znodes that a session owns, as far as this process knows them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::session::writes::Writes;
use crate::sync::lock;

/// The list of the znodes that a session owns, and the writes that are about to be sent under them.
#[derive(Debug, Default)]
pub(crate) struct OwnZnodes {
    /// The number of entries of each znode.
    listed: Mutex<BTreeMap<OwnZnode, usize>>,
    /// True if entries stay in the list.
    is_kept: AtomicBool,
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

    /// Keeps all entries from now on, also of those that are dropped.
    ///
    /// Who leaves the session to another process then knows what it may have created.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::SeqCst);
    }

    /// All znodes that are listed now.
    pub(crate) fn all(&self) -> Vec<OwnZnode> {
        lock(&self.listed).keys().cloned().collect()
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut znodes = lock(&self.znodes.listed);
        if self.znodes.is_kept.load(Ordering::SeqCst) {
            return;
        }
        if let Some(number) = znodes.get_mut(&self.znode) {
            *number -= 1;
            if *number == 0 {
                znodes.remove(&self.znode);
            }
        }
    }
}
