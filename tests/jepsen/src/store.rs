//! The store of the three sets.

use std::collections::{BTreeMap, BTreeSet};

use crate::checker::{Outcome, Way};

/// The sets of the three ways to write, and the newest token.
#[derive(Debug, Default)]
pub(crate) struct Store {
    registers: [Register; 3],
    newest: Option<i64>,
}

/// What a client has read: the version of each set, and the token that it read with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    versions: [Option<usize>; 3],
    token: i64,
}

impl Store {
    /// A client reads the sets.
    ///
    /// The store notes the token. A holder that has read must not be overwritten by an older one,
    /// although the newer holder has not written yet.
    pub(crate) fn read(&mut self, token: i64) -> Read {
        self.newest = self.newest.max(Some(token));
        let versions = self.registers.each_ref().map(|register| register.head);
        Read { versions, token }
    }

    /// A client writes back the sets that it has read, each with one more element.
    ///
    /// `holds` is what the library of the client answered before the write.
    pub(crate) fn write(&mut self, read: Read, element: u64, holds: bool) -> [Outcome; 3] {
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

    pub(crate) fn set(&self, way: Way) -> BTreeSet<u64> {
        let register = &self.registers[way as usize];
        register.elements(register.head).collect()
    }

    /// The elements of the writes that removed each element from the set of this way, in order.
    ///
    /// A write that has read an older version can bring an element back, which can be removed again.
    pub(crate) fn overwritten_by(&self, way: Way) -> &BTreeMap<u64, Vec<u64>> {
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

    fn elements(&self, version: Option<usize>) -> impl Iterator<Item = u64> {
        let at = |place: Option<usize>| place.map(|place| self.versions[place]);
        let all = std::iter::successors(at(version), move |(before, _)| at(*before));
        all.map(|(_, element)| element)
    }
}
