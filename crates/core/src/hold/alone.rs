//! The fast path of a contender that was alone in the queue before.
//!
//! The server counts the creates in the directory, of every kind of znode, and gives each
//! sequential znode the count as its number. Let a contender hold with nobody else in the queue,
//! release, and create a new znode. If the new number is the next one, no other contender came in
//! between, so the new contender is alone. See [`docs::handoff`](crate::docs::handoff).

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Mutex;

use crate::contender::Sequence;
use crate::path::NodePath;
use crate::sync::lock;

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
/// Knows at least the last [`KEPT`] directories, and at most twice as many.
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
    pub(crate) fn note_gone(&self, directory: &NodePath, alone: Alone) {
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
mod tests {
    use super::*;

    fn known_alone(number: i32, czxid: i64, next: i32, next_czxid: i64) -> bool {
        let alone = Alone {
            sequence: number.into(),
            czxid,
            was_known_alone: false,
        };
        alone.proves_alone(next.into(), next_czxid)
    }

    #[test]
    fn directories_that_were_used_long_ago_are_forgotten() {
        let path = |number: usize| NodePath::new(&format!("/locks/{number}")).expect("a path");
        let alone = |number: usize| Alone {
            sequence: 0.into(),
            czxid: number as i64,
            was_known_alone: false,
        };
        let last = LastAlone::default();
        let known = |number: usize| {
            let directories = lock(&last.0);
            let mut known = directories
                .iter()
                .filter_map(|known| known.get(&path(number)));
            known.next().map(|alone| alone.czxid)
        };
        for number in 1..100 * KEPT {
            last.note_gone(&path(0), alone(number));
            last.note_gone(&path(number), alone(number));
            let oldest = number.saturating_sub(KEPT / 2).max(1);
            assert_eq!(known(oldest), Some(oldest as i64), "{number}");
            assert!(lock(&last.0).iter().map(BTreeMap::len).sum::<usize>() <= 2 * KEPT);
        }
        assert_eq!(known(1), None);
        assert_eq!(known(0), Some(100 * KEPT as i64 - 1));
        let taken = last.take(&path(0)).map(|alone| alone.czxid);
        assert_eq!((taken, known(0)), (Some(100 * KEPT as i64 - 1), None));
    }

    #[test]
    fn next_number_after_few_transactions_says_that_nobody_has_come() {
        assert!(known_alone(7, 100, 8, 102));
        assert!(known_alone(7, 100, 8, 107));
    }

    #[test]
    fn another_number_says_nothing() {
        for next in [i32::MIN, -1, 0, 6, 7, 9, i32::MAX] {
            assert!(!known_alone(7, 100, next, 102), "{next}");
        }
    }

    #[test]
    fn as_many_transactions_as_a_new_directory_needs_say_nothing() {
        assert!(!known_alone(7, 100, 8, 108));
        assert!(!known_alone(0, 100, 1, 102));
        assert!(!known_alone(1, 100, 2, 102));
        assert!(known_alone(2, 100, 3, 102));
        // Another leader numbers its transactions anew, and an older transaction is not later.
        assert!(!known_alone(7, (1 << 32) - 1, 8, 1 << 32));
        assert!(!known_alone(7, i64::MIN, 8, i64::MAX));
    }

    #[test]
    fn end_of_the_count_says_nothing() {
        assert!(known_alone(i32::MAX - 2, 100, i32::MAX - 1, 102));
        assert!(!known_alone(i32::MAX - 1, 100, i32::MAX, 102));
        assert!(!known_alone(i32::MAX, 100, i32::MIN, 102));
        assert!(!known_alone(-3, 100, -2, 102));
        assert!(!known_alone(-1, 100, 0, 102));
    }
}
