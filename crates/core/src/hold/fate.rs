//! The fate of a holder's znode.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::events::holding::Record;
use crate::hold_state::LossReason;
use crate::sync::lock;

/// What has happened to a grant's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Standing,
    Deleted,
    Written,
    /// The lease has lapsed, so the znode is being deleted.
    Lapsed,
}

impl Fate {
    /// The reason of the loss, if the znode's fate is one.
    pub(crate) fn loss(self) -> Option<LossReason> {
        match self {
            Fate::Standing => None,
            Fate::Deleted => Some(LossReason::Deleted),
            Fate::Written => Some(LossReason::Written),
            Fate::Lapsed => Some(LossReason::LeaseElapsed),
        }
    }
}

/// Tells a grant the fate of its znode, and the record of its hold how the hold stands.
#[derive(Clone, Debug)]
pub(crate) struct FateTeller {
    fate: watch::Sender<Fate>,
    /// `None` while no hold has the grant, and once the hold's owner ends it.
    record: Arc<Mutex<Option<Arc<Record>>>>,
}

impl FateTeller {
    pub(crate) fn new() -> (FateTeller, watch::Receiver<Fate>) {
        let (fate, told) = watch::channel(Fate::Standing);
        let record = Arc::default();
        (FateTeller { fate, record }, told)
    }

    /// Tells a grant its fate. Only the first fate counts.
    pub(crate) fn tell(&self, fate: Fate) {
        let is_first = self.fate.send_if_modified(|now| {
            let standing = *now == Fate::Standing;
            if standing {
                *now = fate;
            }
            standing
        });
        if let (true, Some(reason)) = (is_first, fate.loss()) {
            self.record(|record| record.lost(reason));
        }
    }

    pub(crate) fn fate(&self) -> Fate {
        *self.fate.borrow()
    }

    /// True if no grant and no view is left to tell.
    pub(crate) fn is_closed(&self) -> bool {
        self.fate.is_closed()
    }

    /// Sets the record of the hold that has the grant now.
    pub(crate) fn records(&self, record: Option<Arc<Record>>) {
        *lock(&self.record) = record;
    }

    /// Tells the record of the hold something, if a hold has the grant.
    pub(crate) fn record(&self, tell: impl FnOnce(&Record)) {
        // The lock is free while the record tells the user's subscriber.
        let record = lock(&self.record).clone();
        if let Some(record) = record {
            tell(&record);
        }
    }
}
