//! The holds of one session: their loss watches, and their end at a lapse.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::hold::fate::{Fate, FateTeller};
use crate::hold::loss_watch::{Gone, LossWatch, Watched};
use crate::hold::own_znode::{OwnNode, until_gone};
use crate::hold_state::LossReason;
use crate::server::ensemble::ServerSession;
use crate::server::error::SessionEnd;
use crate::session::live::{Attachment, Contact, LiveSession};
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
    node: OwnNode,
    fate: FateTeller,
}

/// A loss watch that is not set yet.
///
/// Most holds are released before a loss watch is worth a request.
pub(crate) struct UnsetLossWatch {
    node: OwnNode,
    fate: FateTeller,
}

impl Attachment for Granted {
    fn attach(_live: &LiveSession) -> Granted {
        Granted::default()
    }

    /// Sets a loss watch for each hold granted since the last probe, if it is still held.
    fn tick(&self, live: &Arc<LiveSession>, server: &Arc<dyn ServerSession>) {
        let unset = std::mem::take(&mut *lock(&self.unset));
        for unset in unset.into_iter().filter(|unset| !unset.is_done()) {
            live.in_background(unset.set(live.clone(), server.clone()));
        }
    }

    /// Deletes the znodes of the holds that were lost by a lapse of the lease.
    ///
    /// A lost hold must not keep other contenders waiting, even if its owner keeps it.
    fn supervised(&self, live: &Arc<LiveSession>) {
        self.tell_contact(live.condition().contact);
        for node in self.take_lost(live.condition().lapses) {
            node.doubt();
            let own_live = live.clone();
            live.in_background(async move {
                until_gone(&own_live, (), node.path(), || node.remove(&own_live)).await;
            });
        }
    }

    fn ended(&self, end: SessionEnd) {
        // Dropped after the locks are free, because each drop wakes the views of a hold.
        let grants = std::mem::take(&mut lock(&self.grants).by_number);
        let unset = std::mem::take(&mut *lock(&self.unset));
        for grantee in grants.values() {
            let reason = LossReason::Session(end);
            grantee.fate.record(|record| record.lost(reason));
        }
        drop((grants, unset));
    }
}

impl Granted {
    /// Lists a grant made after this number of lapses, and returns the grant's number.
    pub(crate) fn add(&self, lapses: u64, node: OwnNode, fate: FateTeller) -> u64 {
        let mut grants = lock(&self.grants);
        grants.next += 1;
        let number = grants.next;
        let grantee = Grantee { lapses, node, fate };
        grants.by_number.insert(number, grantee);
        number
    }

    /// Lists the znode that is to replace the znode of a grant made after this number of lapses.
    ///
    /// If the lease lapses before the replacement is granted, this znode is deleted, too.
    pub(crate) fn add_successor(self: &Arc<Self>, lapses: u64, node: OwnNode) -> Successor {
        let (fate, _) = FateTeller::new();
        let number = self.add(lapses, node, fate);
        let granted = self.clone();
        Successor { granted, number }
    }

    /// Removes a grant from the list, because its owner deletes its znode.
    pub(crate) fn remove(&self, number: u64) {
        lock(&self.grants).by_number.remove(&number);
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
    fn take_lost(&self, lapses: u64) -> Vec<OwnNode> {
        let mut lost = Vec::new();
        lock(&self.grants).by_number.retain(|_, grantee| {
            // A hold may have been granted after a later lapse meanwhile.
            let is_lost = grantee.lapses < lapses;
            if is_lost {
                lost.push((grantee.fate.clone(), grantee.node.clone()));
            }
            !is_lost
        });
        let told = lost.into_iter().map(|(fate, node)| {
            fate.tell(Fate::Lapsed);
            node
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
    pub(crate) fn new(node: OwnNode, fate: FateTeller) -> UnsetLossWatch {
        UnsetLossWatch { node, fate }
    }

    /// True if no grant and no view is left to tell.
    fn is_done(&self) -> bool {
        self.fate.is_closed()
    }

    /// Sets the watch, and tells the fate of the znode.
    async fn set(self, live: Arc<LiveSession>, server: Arc<dyn ServerSession>) {
        let loss_watch = LossWatch::unarmed(Watched {
            live,
            server,
            node: self.node.clone(),
        });
        // Other contenders may have come by now, and may wait.
        self.node.mark();
        self.tell(loss_watch).await;
    }

    /// Waits for the loss watch, and tells the fate of the znode.
    pub(crate) async fn tell(self, mut loss_watch: LossWatch) {
        let fate = match loss_watch.gone().await {
            Gone::Deleted => Fate::Deleted,
            Gone::Written => Fate::Written,
        };
        self.fate.tell(fate);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::session::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn hold_that_was_granted_after_a_later_lapse_is_not_lost() {
        let (live, _script) = Scripted::open(Duration::ZERO);
        let granted = live.attached::<Granted>();
        let (fate, _told) = FateTeller::new();
        granted.add(1, OwnNode::unique(&live, "/locks/a"), fate.clone());
        assert!(granted.take_lost(0).is_empty());
        assert!(granted.take_lost(1).is_empty());
        assert_eq!(granted.take_lost(2).len(), 1);
        assert_eq!(fate.fate(), Fate::Lapsed);
    }
}
