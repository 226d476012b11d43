//! What is still to be done, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use super::kernel::{Kernel, Slot};

/// The actions of one part of a simulation, in the order in which they are due.
///
/// Each part has an agenda of its own. All agendas share one count of entries, so that two actions
/// of one time happen in the order in which they were scheduled.
#[derive(Debug)]
pub(crate) struct Agenda<A> {
    entries: BTreeMap<Slot, A>,
}

impl<A> Agenda<A> {
    pub(crate) fn new() -> Agenda<A> {
        Agenda {
            entries: BTreeMap::new(),
        }
    }

    /// Schedules an action for this time, or for now if the time has passed.
    pub(crate) fn schedule(&mut self, kernel: &mut Kernel, at: Duration, action: A) {
        let slot = kernel.next_slot(at);
        self.entries.insert(slot, action);
    }

    /// When the next action is due.
    pub(crate) fn next(&self) -> Option<Slot> {
        self.entries.keys().next().copied()
    }

    /// Takes the next action.
    pub(crate) fn take(&mut self, kernel: &mut Kernel) -> Option<A> {
        let (_, action) = self.entries.pop_first()?;
        kernel.release_slot();
        Some(action)
    }
}
