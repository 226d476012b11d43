//! How answers renew the lease of a session, and what a hold may go by.

use std::sync::MutexGuard;
use std::time::Duration;

use super::connection::Connection;
use super::{Contact, Kept, LiveSession};
use crate::backoff::Backoff;
use crate::hold_state::{HoldState, LossReason};
use crate::server::ensemble::ServerSession;
use crate::server::error::ServerError;
use crate::session::lease::Lease;
use crate::sync::lock;

impl Kept {
    /// True if the connection has not broken. All answers until now then came over it.
    fn is_connected(&mut self) -> bool {
        self.connection.stands()
    }
}

/// When a request was sent, and over which connection at the earliest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Duration,
    connections_before: u64,
}

impl LiveSession {
    /// The time and the connection of a request that is about to be sent.
    pub(crate) fn sends(&self) -> Sent {
        Sent {
            at: self.now(),
            connections_before: lock(&self.kept).connections_before,
        }
    }

    /// Notes that a request sent at `sent` has just been answered through the leader.
    pub(crate) fn answered(&self, sent: Duration) {
        let mut kept = lock(&self.kept);
        // If the connection has broken since, another session may have got the answer.
        if kept.is_connected() {
            kept.lease.answered(self.now(), sent);
        }
        self.was_answered(kept);
    }

    /// Notes that a write was committed. It proves the connection that it was sent over.
    ///
    /// Nobody may have looked at the answer for a while, so another connection may be known now.
    /// The write says nothing about that one.
    pub(crate) fn committed(&self, sent: Sent) {
        let mut kept = lock(&self.kept);
        if kept.is_connected() && sent.connections_before == kept.connections_before {
            let now = self.now();
            kept.lease.proved(now);
            kept.lease.answered(now, sent.at);
        }
        self.was_answered(kept);
    }

    fn was_answered(&self, mut kept: MutexGuard<'_, Kept>) {
        kept.answered_at = Some(self.now());
        self.publish_lapses(kept);
    }

    /// Switches to the current connection if the known connection has broken.
    pub(crate) fn look_at_connection(&self, server: &dyn ServerSession) {
        let mut kept = lock(&self.kept);
        if !kept.is_connected() {
            kept.connection = Connection::of(server);
            kept.connections_before += 1;
            if kept.is_connected() {
                kept.lease.connected_anew();
            }
        }
    }

    /// True if the connection needs a proof and the proof can be sent now.
    ///
    /// Only a session that owns znodes needs a proof.
    pub(crate) fn must_be_proven(&self) -> bool {
        let mut kept = lock(&self.kept);
        !kept.lease.is_proven() && kept.is_connected() && !self.own_znodes.is_empty()
    }

    /// Waits until the connection is proven, for at most two timeouts.
    pub(crate) async fn until_proven(&self) {
        let is_proven = || {
            let mut kept = lock(&self.kept);
            kept.is_connected() && kept.lease.is_proven()
        };
        let proven = async {
            while !is_proven() {
                tokio::time::sleep(self.probe_interval / 4).await;
            }
        };
        // After the timeout, a session without a connection must have expired.
        let _ = tokio::time::timeout(self.timeout * 2, proven).await;
    }

    /// Compares the lease with the clock.
    ///
    /// Returns the number of lapses until now, and true if the lease has lapsed now.
    pub(crate) fn look_at_lease(&self) -> (u64, bool) {
        self.publish_lapses(lock(&self.kept))
    }

    /// The number of lapses, or `None` if no hold may be granted now.
    pub(crate) fn may_grant(&self) -> Option<u64> {
        let may_grant = lock(&self.kept).lease.may_grant(self.now());
        let (lapses, lapsed) = self.look_at_lease();
        (may_grant && !lapsed).then_some(lapses)
    }

    /// Sends one `sync` after another until `is_enough` accepts the lease.
    ///
    /// Sends nothing if `is_enough` accepts the lease at once.
    pub(crate) async fn until_lease(
        &self,
        path: &str,
        is_enough: fn(&Lease, Duration) -> bool,
    ) -> Result<(), ServerError> {
        let mut backoff = Backoff::up_to(self.probe_interval);
        while !is_enough(&lock(&self.kept).lease, self.now()) {
            let server = self.server()?;
            let sent = self.now();
            match server.sync(path).await {
                Ok(()) => self.answered(sent),
                Err(ServerError::OutcomeUnknown(_)) => {}
                Err(error) => return Err(error),
            }
            drop(server);
            backoff.wait().await;
        }
        Ok(())
    }

    /// The time until the lease lapses. Zero if it has lapsed.
    pub(crate) fn remaining(&self) -> Duration {
        let valid_until = lock(&self.kept).lease.valid_until();
        valid_until.saturating_sub(self.now())
    }

    /// How long ago a request was last answered through the leader.
    pub(crate) fn last_answer(&self) -> Option<Duration> {
        let answered_at = lock(&self.kept).answered_at;
        answered_at.map(|at| self.now().saturating_sub(at))
    }

    /// The state of a hold that was granted after this number of lapses.
    pub(crate) fn standing(&self, lapses: u64) -> HoldState {
        let contact = self.condition().contact;
        let (lapses_now, _) = self.look_at_lease();
        match contact {
            Contact::Ended(end) => HoldState::Lost(LossReason::Session(end)),
            _ if lapses_now != lapses => HoldState::Lost(LossReason::LeaseElapsed),
            Contact::Suspended => HoldState::Suspended,
            Contact::Connected => HoldState::Held,
        }
    }

    fn publish_lapses(&self, mut kept: MutexGuard<'_, Kept>) -> (u64, bool) {
        let (lapses, lapsed) = kept.lease.look(self.now());
        drop(kept);
        self.condition.send_if_modified(|condition| {
            let news = lapses > condition.lapses;
            condition.lapses = condition.lapses.max(lapses);
            news
        });
        (lapses, lapsed)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::FutureExt;
    use tokio::time::sleep;

    use super::*;
    use crate::session::scripted::{LEASE, Scripted, TIMEOUT};

    const SECOND: Duration = Duration::from_secs(1);

    fn valid_until(live: &LiveSession) -> Duration {
        live.now() + live.remaining()
    }

    /// Renews the lease by two requests that are answered at once, the wait apart.
    async fn renew(live: &LiveSession) {
        for _ in 0..2 {
            sleep(3 * SECOND).await;
            live.answered(live.now());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sync_before_a_grant_counts_from_its_sending() {
        let (live, script) = Scripted::open(2 * SECOND);
        sleep(TIMEOUT).await;
        let renewed = live.until_lease("/", Lease::may_grant).await;
        renewed.expect("the server answers");
        assert!(script.has_sent(valid_until(&live) - LEASE));
    }

    #[tokio::test(start_paused = true)]
    async fn write_counts_from_its_sending() {
        let (live, _) = Scripted::open(SECOND);
        sleep(SECOND).await;
        let sent = live.sends();
        sleep(2 * SECOND).await;
        live.committed(sent);
        sleep(3 * SECOND).await;
        live.answered(live.now());
        assert_eq!(valid_until(&live), SECOND + LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn answer_over_a_connection_that_nobody_has_looked_at_counts_for_nothing() {
        let (live, script) = Scripted::open(SECOND);
        script.reconnect();
        renew(&live).await;
        assert_eq!(valid_until(&live), LEASE);
        live.look_at_connection(&*script);
        assert_eq!(valid_until(&live), LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn write_proves_no_connection_but_its_own() {
        let (live, script) = Scripted::open(SECOND);
        script.reconnect();
        live.look_at_connection(&*script);
        script.reconnect();
        live.committed(live.sends());
        assert_eq!(live.may_grant(), None);
    }

    /// Nobody has looked at its answer before the session has seen the next connection.
    #[tokio::test(start_paused = true)]
    async fn write_over_an_earlier_connection_proves_no_later_one() {
        let (live, script) = Scripted::open(SECOND);
        let sent = live.sends();
        script.reconnect();
        live.look_at_connection(&*script);
        live.committed(sent);
        assert_eq!(live.may_grant(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_granted_over_a_connection_that_is_not_proven() {
        let (live, script) = Scripted::open(SECOND);
        assert_eq!(live.may_grant(), Some(0));
        script.reconnect();
        live.look_at_connection(&*script);
        assert_eq!(live.may_grant(), None);
        live.committed(live.sends());
        assert_eq!(live.may_grant(), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_granted_that_is_lost_before_the_lease_can_be_renewed() {
        let (live, _) = Scripted::open(SECOND);
        sleep(7 * SECOND).await;
        assert_eq!(live.may_grant(), None);
        assert_eq!(live.look_at_lease(), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_granted_if_the_process_stands_still_between_two_looks_at_the_clock() {
        let (live, script) = Scripted::open(SECOND);
        script.pause_between_looks(TIMEOUT);
        assert_eq!(live.may_grant(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn hold_is_lost_as_its_lease_ends_though_nobody_has_noticed() {
        let (live, _) = Scripted::open(SECOND);
        sleep(LEASE - Duration::from_millis(1)).await;
        assert_eq!(live.standing(0), HoldState::Held);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(live.standing(0), HoldState::Lost(LossReason::LeaseElapsed));
    }

    #[tokio::test(start_paused = true)]
    async fn hold_that_a_lapse_has_cost_stays_lost() {
        let (live, _) = Scripted::open(SECOND);
        sleep(LEASE).await;
        renew(&live).await;
        assert_eq!(live.may_grant(), Some(1));
        assert_eq!(live.standing(0), HoldState::Lost(LossReason::LeaseElapsed));
        assert_eq!(live.standing(1), HoldState::Held);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_has_broken_is_not_proven() {
        let (live, script) = Scripted::open(SECOND);
        assert!(live.until_proven().now_or_never().is_some());
        script.reconnect();
        assert!(live.until_proven().now_or_never().is_none());
    }
}
