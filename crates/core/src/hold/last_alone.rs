//! The fast path of a contender that was alone in the queue before.
//!
//! The server counts the creates in the directory, of every kind of znode, and gives each
//! sequential znode the count as its number. Let a contender hold with nobody else in the queue,
//! release, and create a new znode. If the new number is the next one, no other contender came in
//! between, so the new contender is alone. See [`docs::handoff`](crate::docs::handoff).

use std::collections::BTreeMap;
use std::mem::take;

use crate::contender::Sequence;
use crate::path::NodePath;
use crate::sync::{Mutex, lock};

/// A contender that held while its znode was the only child of the directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    pub(crate) sequence: Sequence,
    /// The transaction that created the contender's znode.
    pub(crate) czxid: i64,
    /// True if the number of the contender's own znode proved that it was alone.
    pub(crate) was_known_alone: bool,
}

impl Alone {
    /// True if a contender created after this one's deletion is alone, too.
    ///
    /// A directory that was deleted and created again counts from zero. It reaches this number only
    /// after one transaction for each number before. If there were fewer transactions, it is the
    /// same directory.
    pub(crate) fn proves_alone(&self, sequence: Sequence, czxid: i64) -> bool {
        let number = self.sequence.get();
        let same_leader = self.czxid >> 32 == czxid >> 32;
        let transactions = czxid.checked_sub(self.czxid);
        let fewer = 0..=i64::from(number);
        // The last number of the count is given out more than once.
        sequence.get() < i32::MAX
            && number.checked_add(1) == Some(sequence.get())
            && same_leader
            && transactions.is_some_and(|transactions| fewer.contains(&transactions))
    }
}

/// The last contender of each directory that was alone, and whose znode is deleted.
///
/// This value knows at least the last [`KEPT`] directories, and at most twice as many.
#[derive(Debug, Default)]
pub(crate) struct LastAlone(Mutex<[BTreeMap<NodePath, Alone>; 2]>);

/// How many directories are noted before the older half of them is forgotten.
const KEPT: usize = 512;

impl LastAlone {
    /// Forgets the contender, because the next create makes its number useless.
    pub(crate) fn take(&self, directory: &NodePath) -> Option<Alone> {
        let [new, old] = &mut *lock(&self.0);
        let older = old.remove(directory);
        new.remove(directory).or(older)
    }

    /// Notes a contender whose znode is deleted for certain.
    pub(crate) fn insert(&self, directory: &NodePath, alone: Alone) {
        let [new, old] = &mut *lock(&self.0);
        if let Some(known) = new.get_mut(directory) {
            *known = alone;
            return;
        }
        if new.len() == KEPT {
            *old = take(new);
        }
        new.insert(directory.clone(), alone);
    }
}

#[cfg(test)]
#[path = "../../tests/unit/last_alone.rs"]
mod tests;
