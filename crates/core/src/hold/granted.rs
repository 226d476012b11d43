//! The grants of a session, and what the session does for them: loss watches, and their end.

use std::sync::Arc;

use crate::hold::grant::Grant;
use crate::hold::loss_watch::{LossWatch, Watched, ZnodeLoss};
use crate::hold::registry::Registry;
use crate::hold_state::{Ended, LossReason};
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::LiveSession;
use crate::server::ensemble::ServerSession;
use crate::server::error::SessionEnd;

/// The grants of a session whose holds are not released yet.
pub(crate) type Granted = Registry<Arc<Grant>>;

impl Granted {
    /// Sets a loss watch for each hold granted since the last probe.
    pub(crate) fn watch_each(&self, live: &Arc<LiveSession>, server: &Arc<dyn ServerSession>) {
        for grant in self.those(Grant::takes_watch) {
            live.in_background(grant.watch(server.clone()));
        }
    }

    /// Ends the grants that were lost by this lapse of the lease, and deletes their znodes.
    ///
    /// A lost hold must not keep other contenders waiting, even if its owner keeps it.
    pub(crate) fn delete_lost(&self, epoch: LeaseEpoch) {
        // A hold may have been granted after a later lapse meanwhile.
        for grant in self.take(|grant| grant.epoch < epoch) {
            grant.lose(LossReason::LeaseElapsed);
            grant.znode.set_held(false);
            for znode in [&grant.znode].into_iter().chain(grant.replacement.get()) {
                znode.delete_in_background(());
            }
        }
    }

    /// Ends each grant with its session, unless the lease had lapsed before.
    pub(crate) fn report_end(&self, end: SessionEnd) {
        for grant in self.take(|_| true) {
            grant.lose(LossReason::Session(end));
        }
    }

    /// Reports to the events of the holds whether a server answers.
    pub(crate) fn report_suspended(&self, is_suspended: bool) {
        for grant in self.those(|_| true) {
            grant.report_suspended(is_suspended);
        }
    }

    /// Warns if the task that runs now holds by the znode that its contender waits for.
    pub(crate) fn warn_of_own_wait(&self, contender: &str, awaited: &str) {
        for grant in self.those(|grant| grant.znode.path() == awaited) {
            grant.warn_of_own_wait(contender);
        }
    }

    /// The grants of which this is true. The registry is free while they report to a subscriber.
    fn those(&self, is_so: impl Fn(&Grant) -> bool) -> Vec<Arc<Grant>> {
        let registered = self.lock();
        let grants = registered.values.values();
        grants.filter(|grant| is_so(grant)).cloned().collect()
    }

    fn take(&self, is_taken: impl Fn(&Grant) -> bool) -> Vec<Arc<Grant>> {
        let mut taken = Vec::new();
        self.lock().values.retain(|_, grant| {
            let is_taken = is_taken(grant);
            if is_taken {
                taken.push(grant.clone());
            }
            !is_taken
        });
        taken
    }
}

impl Grant {
    /// Sets the loss watch, and follows the znode by it.
    async fn watch(self: Arc<Self>, server: Arc<dyn ServerSession>) {
        let znode = self.znode.clone();
        let loss_watch = LossWatch::new(Watched { server, znode }, None);
        // Other contenders may have come by now, and may wait.
        self.znode.mark_on_release();
        self.follow(loss_watch).await;
    }

    /// Ends the grant once its loss watch reports that the znode is lost.
    ///
    /// If another client has written to the znode, the method deletes it. A lost hold must not keep
    /// other contenders waiting. A grant whose own release is reported has ended before.
    pub(crate) async fn follow(self: Arc<Self>, mut loss_watch: LossWatch) {
        let reason = match loss_watch.lost().await {
            ZnodeLoss::Deleted => LossReason::Deleted,
            ZnodeLoss::Written => LossReason::Written,
        };
        if self.lose(reason) == Ended::Lost(LossReason::Written) {
            self.znode.delete_in_background(());
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/granted.rs"]
mod tests;
