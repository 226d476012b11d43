//! The holds of one session: their loss watches, and their end at a lapse.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::hold::loss_watch::{Gone, LossWatch, Watched};
use crate::hold::own_znode::OwnZnode;
use crate::hold::standing::{Fate, FateTeller};
use crate::hold_state::LossReason;
use crate::live::live_session::{Condition, Contact, LiveSession};
use crate::server::ensemble::ServerSession;
use crate::server::error::SessionEnd;
use crate::sync::lock;

/// The holds granted in a session and not yet released.
#[derive(Default)]
pub(crate) struct Granted {
    grants: Mutex<Grants>,
    /// The loss watches of the holds granted since the last probe.
    unset: Mutex<Vec<UnsetLossWatch>>,
    /// True if the holds were last told that no server answers.
    is_suspended: AtomicBool,
}

/// Grants by number.
#[derive(Default)]
struct Grants {
    next: u64,
    by_number: BTreeMap<u64, Grantee>,
}

struct Grantee {
    /// The number of lapses of the lease at the grant.
    lapses: u64,
    znode: OwnZnode,
    fate: FateTeller,
}

/// A loss watch that is not set yet.
///
/// Most holds are released before a loss watch is worth a request.
pub(crate) struct UnsetLossWatch {
    znode: OwnZnode,
    fate: FateTeller,
}

impl Granted {
    /// Sets a loss watch for each hold granted since the last probe, if it is still held.
    pub(crate) fn tick(&self, live: &Arc<LiveSession>, server: &Arc<dyn ServerSession>) {
        let unset = std::mem::take(&mut *lock(&self.unset));
        for unset in unset.into_iter().filter(|unset| !unset.is_done()) {
            live.in_background(unset.set(server.clone()));
        }
    }

    /// Deletes the znodes of the holds that were lost by a lapse of the lease.
    ///
    /// A lost hold must not keep other contenders waiting, even if its owner keeps it.
    pub(crate) fn supervised(&self, now: Condition) {
        self.tell_contact(now.contact);
        for znode in self.take_lost(now.lapses) {
            znode.set_held(false);
            znode.remove_in_background(());
        }
    }

    /// Reports each hold as lost with its session.
    pub(crate) fn ended(&self, end: SessionEnd) {
        // Dropped after the locks are free, because each drop wakes the views of a hold.
        let grants = std::mem::take(&mut lock(&self.grants).by_number);
        let unset = std::mem::take(&mut *lock(&self.unset));
        for grantee in grants.values() {
            let reason = LossReason::Session(end);
            grantee.fate.record(|record| record.lost(reason));
        }
        drop((grants, unset));
    }

    /// Lists a grant made after this number of lapses, and returns the grant's number.
    pub(crate) fn add(&self, lapses: u64, znode: OwnZnode, fate: FateTeller) -> u64 {
        let mut grants = lock(&self.grants);
        grants.next += 1;
        let number = grants.next;
        let grantee = Grantee {
            lapses,
            znode,
            fate,
        };
        grants.by_number.insert(number, grantee);
        number
    }

    /// Lists the znode that is to replace the znode of a grant made after this number of lapses.
    ///
    /// If the lease lapses before the replacement is granted, this znode is deleted, too.
    pub(crate) fn add_successor(self: &Arc<Self>, lapses: u64, znode: OwnZnode) -> Successor {
        let (fate, _) = FateTeller::new();
        let number = self.add(lapses, znode, fate);
        let granted = self.clone();
        Successor { granted, number }
    }

    /// Removes a grant from the list, because its owner deletes its znode.
    pub(crate) fn remove(&self, number: u64) {
        lock(&self.grants).by_number.remove(&number);
    }

    /// Warns that a contender of this session has waited this long behind these of its holds.
    ///
    /// Does nothing if the hold itself is younger than the session timeout.
    pub(crate) fn warn_of_own_wait(
        &self,
        contender: &str,
        waited: Duration,
        is_awaited: impl Fn(&str) -> bool,
    ) {
        let grants = lock(&self.grants);
        let mut awaited = grants.by_number.values();
        let awaited = awaited.find(|grantee| is_awaited(grantee.znode.path()));
        let awaited = awaited.map(|grantee| (grantee.znode.clone(), grantee.fate.clone()));
        drop(grants);
        if let Some((znode, fate)) = awaited {
            let longest = znode.live().timeout();
            fate.record(|record| record.bars_own(contender, znode.path(), waited, longest));
        }
    }

    /// Sets this loss watch at the next tick, if the hold lasts until then.
    pub(crate) fn watch_later(&self, loss_watch: UnsetLossWatch) {
        let mut unset = lock(&self.unset);
        if unset.len() == unset.capacity() {
            unset.retain(|unset| !unset.is_done());
            // Half of the vector is free afterwards, so this happens seldom.
            let standing = unset.len();
            unset.reserve(standing);
        }
        unset.push(loss_watch);
    }

    /// Tells the grants of before the last lapse their fate, and returns their znodes.
    fn take_lost(&self, lapses: u64) -> Vec<OwnZnode> {
        let mut lost = Vec::new();
        lock(&self.grants).by_number.retain(|_, grantee| {
            // A hold may have been granted after a later lapse meanwhile.
            let is_lost = grantee.lapses < lapses;
            if is_lost {
                lost.push((grantee.fate.clone(), grantee.znode.clone()));
            }
            !is_lost
        });
        let told = lost.into_iter().map(|(fate, znode)| {
            fate.tell(Fate::Lapsed);
            znode
        });
        told.collect()
    }

    /// Tells the records of the holds whether a server answers, if that has changed.
    fn tell_contact(&self, contact: Contact) {
        let is_suspended = contact == Contact::Suspended;
        if self.is_suspended.swap(is_suspended, Ordering::Relaxed) == is_suspended {
            return;
        }
        let grants = lock(&self.grants);
        let fates = grants.by_number.values().map(|grantee| &grantee.fate);
        let fates: Vec<FateTeller> = fates.cloned().collect();
        drop(grants);
        for fate in fates {
            fate.record(|record| record.suspended(is_suspended));
        }
    }
}

/// A listed znode without a grant. A drop removes it from the list.
pub(crate) struct Successor {
    granted: Arc<Granted>,
    number: u64,
}

impl Drop for Successor {
    fn drop(&mut self) {
        self.granted.remove(self.number);
    }
}

impl UnsetLossWatch {
    pub(crate) fn new(znode: OwnZnode, fate: FateTeller) -> UnsetLossWatch {
        UnsetLossWatch { znode, fate }
    }

    /// True if no grant and no view is left to tell.
    fn is_done(&self) -> bool {
        self.fate.is_closed()
    }

    /// Sets the watch, and tells the fate of the znode.
    async fn set(self, server: Arc<dyn ServerSession>) {
        let znode = self.znode.clone();
        let loss_watch = LossWatch::unarmed(Watched { server, znode });
        // Other contenders may have come by now, and may wait.
        self.znode.mark();
        self.tell(loss_watch).await;
    }

    /// Waits for the loss watch, and tells the fate of the znode.
    pub(crate) async fn tell(self, mut loss_watch: LossWatch) {
        let fate = match loss_watch.gone().await {
            Gone::Deleted => {
                self.znode.is_gone();
                Fate::Deleted
            }
            Gone::Written => Fate::Written,
        };
        self.fate.tell(fate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::own_znode::OwnZnodes;
    use crate::live::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn hold_that_was_granted_after_a_later_lapse_is_not_lost() {
        let (live, _script) = Scripted::open(Duration::ZERO);
        let granted = Granted::default();
        let znode = OwnZnodes::new(&live).unique("/locks/a");
        let (fate, _told) = FateTeller::new();
        granted.add(1, znode, fate.clone());
        assert!(granted.take_lost(0).is_empty());
        assert!(granted.take_lost(1).is_empty());
        assert_eq!(granted.take_lost(2).len(), 1);
        assert_eq!(fate.fate(), Fate::Lapsed);
    }
}
