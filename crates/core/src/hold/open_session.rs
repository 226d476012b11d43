//! One ZooKeeper session with all that this process keeps about it: its znodes and its grants.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::hold::grant::Grant;
use crate::hold::loss_watch::LossWatch;
use crate::hold::own_znode::SessionZnodes;
use crate::hold_state::LossReason;
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::{LiveSession, Status};
use crate::server::ensemble::ServerSession;
use crate::server::error::SessionEnd;
use crate::sync::{Mutex, lock};

/// One ZooKeeper session, its znodes and its grants.
///
/// The [`LiveSession`] is the part that outlives the session: it says whether a hold lasts.
pub(crate) struct OpenSession {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) znodes: Arc<SessionZnodes>,
    /// The grants whose owners keep them, by the numbers of their znodes.
    grants: Mutex<BTreeMap<u64, Arc<Grant>>>,
}

impl OpenSession {
    /// A session at servers with this `jute.maxbuffer`.
    pub(crate) fn new(live: Arc<LiveSession>, jute_maxbuffer: usize) -> Arc<OpenSession> {
        Arc::new(OpenSession {
            znodes: SessionZnodes::new(&live, jute_maxbuffer),
            grants: Mutex::default(),
            live,
        })
    }

    pub(crate) fn add_grant(&self, grant: &Arc<Grant>) {
        lock(&self.grants).insert(grant.znode.number(), grant.clone());
    }

    /// Forgets the grant of the znode with this number.
    pub(crate) fn forget_grant(&self, znode: u64) {
        // The grant is dropped while the mutex is free.
        let _forgotten = lock(&self.grants).remove(&znode);
    }

    /// Sets a loss watch for each hold granted since the last probe.
    pub(crate) fn watch_each(&self, server: &Arc<ServerSession>) {
        for grant in self.grants(|grant| !grant.is_watched()) {
            let (znode, server) = (grant.znode.clone(), server.clone());
            grant.watch_by(LossWatch::new(znode, server, None));
        }
    }

    /// Ends the grants that were lost by this lapse of the lease, and deletes their znodes.
    ///
    /// A lost hold must not keep other contenders waiting, even if its owner keeps it.
    pub(crate) fn delete_lost(&self, epoch: LeaseEpoch) {
        // A hold may have been granted after a later lapse meanwhile.
        for grant in self.take_grants(|grant| grant.terms.epoch < epoch) {
            grant.lose(LossReason::LeaseElapsed);
            grant.znode.end_hold();
            grant.znode.delete_in_background(());
            if let Some(name) = grant.replacement.get() {
                self.znodes.contender(name.clone()).delete_in_background(());
            }
        }
    }

    /// Warns if the task that runs now holds by the znode that its contender waits for.
    pub(crate) fn warn_of_own_wait(&self, contender: &str, awaited: &str) {
        for grant in self.grants(|grant| grant.znode.path() == awaited) {
            grant.warn_of_own_wait(contender);
        }
    }

    /// The grants of which this is true. The mutex is free while they report to a subscriber.
    fn grants(&self, is_so: impl Fn(&Grant) -> bool) -> Vec<Arc<Grant>> {
        let grants = lock(&self.grants);
        grants
            .values()
            .filter(|grant| is_so(grant))
            .cloned()
            .collect()
    }

    fn take_grants(&self, is_taken: impl Fn(&Grant) -> bool) -> Vec<Arc<Grant>> {
        let mut taken = Vec::new();
        lock(&self.grants).retain(|_, grant| {
            let is_taken = is_taken(grant);
            if is_taken {
                taken.push(grant.clone());
            }
            !is_taken
        });
        taken
    }

    /// Ends the session on this side: wakes its waiters, and closes the `ServerSession`.
    ///
    /// The server may let the next contender hold as soon as the `ServerSession` is closed or
    /// dropped. So each hold is reported as lost first. If the server does not know of the end yet,
    /// the znodes stay registered. The result is what [`ServerSession::close`] returns.
    pub(crate) fn end(&self, end: SessionEnd) -> Option<Arc<ServerSession>> {
        self.znodes.end(end);
        self.live.set_status(Status::Ended(end));
        // A grant stays lost by an earlier lapse of the lease.
        for grant in self.take_grants(|_| true) {
            grant.lose(LossReason::Session(end));
        }
        let server = self.live.take_server();
        // An attempt that is not polled keeps a reference, which would keep the session open.
        server.filter(|_| end.is_closed_here())?.close()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/open_session.rs"]
mod tests;
