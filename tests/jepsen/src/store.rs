//! The store of the three sets.

use std::collections::{BTreeMap, BTreeSet};

use crate::checker::{Outcome, Way};

/// The sets of the three ways to write, and the newest token.
#[derive(Debug, Default)]
pub struct Store {
    registers: [Register; 3],
    newest: Option<i64>,
}

/// What a client has read: the version of each set, and the token that it read with.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    versions: [Option<usize>; 3],
    token: i64,
}

impl Store {
    /// A client reads the sets.
    ///
    /// The store notes the token. A holder that has read must not be overwritten by an older one,
    /// although the newer holder has not written yet.
    pub fn read(&mut self, token: i64) -> Read {
        self.newest = self.newest.max(Some(token));
        let versions = self.registers.each_ref().map(|register| register.head);
        Read { versions, token }
    }

    /// A client writes back the sets that it has read, each with one more element.
    ///
    /// `holds` is what the library of the client answered before the write.
    pub fn write(&mut self, read: Read, element: u64, holds: bool) -> [Outcome; 3] {
        Way::ALL.map(|way| {
            match way {
                Way::Checked if !holds => return Outcome::Withheld,
                Way::Fenced if self.newest > Some(read.token) => return Outcome::Refused,
                _ => {}
            }
            self.registers[way as usize].write(read.versions[way as usize], element);
            Outcome::Acknowledged
        })
    }

    /// What the set of this way contains.
    pub fn set(&self, way: Way) -> BTreeSet<u64> {
        let register = &self.registers[way as usize];
        register.elements(register.head).collect()
    }

    /// The elements of the writes that removed each element from the set of this way, in order.
    ///
    /// A write that has read an older version can bring an element back, which can be removed again.
    pub fn overwritten_by(&self, way: Way) -> &BTreeMap<u64, Vec<u64>> {
        &self.registers[way as usize].overwritten_by
    }
}

/// A register whose value is a set. It keeps each version, so that a client sends the number of the
/// version that it has read, in place of the whole set.
#[derive(Debug, Default)]
struct Register {
    /// The element of each version, and the version that it was added to.
    versions: Vec<(Option<usize>, u64)>,
    head: Option<usize>,
    /// The elements of the writes that removed an element, by the element that they removed.
    overwritten_by: BTreeMap<u64, Vec<u64>>,
}

impl Register {
    fn write(&mut self, read: Option<usize>, element: u64) {
        if read != self.head {
            let kept: BTreeSet<u64> = self.elements(read).collect();
            let all: BTreeSet<u64> = self.elements(self.head).collect();
            for removed in all.difference(&kept) {
                let by = self.overwritten_by.entry(*removed).or_default();
                by.push(element);
            }
        }
        self.head = Some(self.versions.len());
        self.versions.push((read, element));
    }

    /// The elements of this version.
    fn elements(&self, version: Option<usize>) -> impl Iterator<Item = u64> {
        let at = |place: Option<usize>| place.map(|place| self.versions[place]);
        let all = std::iter::successors(at(version), move |(before, _)| at(*before));
        all.map(|(_, element)| element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::{Attempt, check};

    /// The history of these writes, each judged by the store.
    fn lost(store: &Store, written: &[(u64, i64, [Outcome; 3])], way: Way) -> usize {
        let attempt =
            |&(element, token, outcomes)| Attempt::without_times(element, token, outcomes);
        let history: Vec<Attempt> = written.iter().map(attempt).collect();
        check(&history, way, &store.set(way)).lost.len()
    }

    #[test]
    fn turns_one_after_the_other_lose_nothing() {
        let mut store = Store::default();
        let written: Vec<_> = (1..=5)
            .map(|turn| {
                let read = store.read(turn);
                (turn as u64, turn, store.write(read, turn as u64, true))
            })
            .collect();
        for way in Way::ALL {
            assert_eq!(lost(&store, &written, way), 0, "{way:?}");
            assert_eq!(store.set(way), BTreeSet::from([1, 2, 3, 4, 5]));
        }
    }

    #[test]
    fn late_write_of_a_paused_holder_loses_the_writes_since_unless_the_token_is_compared() {
        let mut store = Store::default();
        let before = store.read(0);
        store.write(before, 5, true);
        let paused = store.read(1);
        let second = store.read(2);
        let second = (20, 2, store.write(second, 20, true));
        let third = store.read(3);
        let third = (30, 3, store.write(third, 30, true));
        // It has looked at its lock before the pause.
        let late = (10, 1, store.write(paused, 10, true));
        let written = [second, third, late];
        assert_eq!(lost(&store, &written, Way::Unchecked), 2);
        assert_eq!(lost(&store, &written, Way::Checked), 2);
        assert_eq!(lost(&store, &written, Way::Fenced), 0);
        assert_eq!(late.2[Way::Fenced as usize], Outcome::Refused);
        // The paused holder has read 5.
        let by = BTreeMap::from([(20, vec![10]), (30, vec![10])]);
        assert_eq!(*store.overwritten_by(Way::Checked), by);
        assert!(store.overwritten_by(Way::Fenced).is_empty());
    }

    #[test]
    fn late_write_between_the_read_and_the_write_of_the_next_holder_is_refused() {
        let mut store = Store::default();
        let paused = store.read(1);
        let next = store.read(2);
        let late = (10, 1, store.write(paused, 10, true));
        let next = (20, 2, store.write(next, 20, true));
        assert_eq!(lost(&store, &[late, next], Way::Fenced), 0);
        assert_eq!(lost(&store, &[late, next], Way::Checked), 1);
        assert_eq!(store.overwritten_by(Way::Checked)[&10], [20]);
    }

    #[test]
    fn holder_that_knows_of_its_loss_withholds_its_write() {
        let mut store = Store::default();
        let paused = store.read(1);
        let next = store.read(2);
        let next = (20, 2, store.write(next, 20, true));
        let late = (10, 1, store.write(paused, 10, false));
        assert_eq!(lost(&store, &[next, late], Way::Checked), 0);
        assert_eq!(lost(&store, &[next, late], Way::Unchecked), 1);
    }
}
