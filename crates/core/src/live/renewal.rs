//! How answers renew the lease of a session, and what a hold may go by.

use std::sync::MutexGuard;
use std::time::Duration;

use crate::hold_state::{HoldState, LossReason};
use crate::live::live_session::{Contact, Kept, LiveSession};
use crate::retry::Backoff;
use crate::server::ensemble::{Exchange, ServerSession};
use crate::server::error::ServerError;
use crate::sync::lock;

impl Kept {
    /// True if this is the connection whose answers renew the lease.
    fn knows(&self, connection: Option<u64>) -> bool {
        connection.is_some() && self.connection == connection
    }
}

impl LiveSession {
    /// Notes that a request was answered through the leader.
    pub(crate) fn answered(&self, exchange: Exchange) {
        let mut kept = lock(&self.kept);
        if kept.knows(exchange.connection) {
            kept.lease.answered(self.now(), exchange);
        }
        self.was_answered(kept);
    }

    /// Notes that a write was committed. It proves the connection that carried it, and no other.
    pub(crate) fn committed(&self, exchange: Exchange) {
        let mut kept = lock(&self.kept);
        if kept.knows(exchange.connection) {
            let now = self.now();
            kept.lease.proved(now);
            kept.lease.answered(now, exchange);
        }
        self.was_answered(kept);
    }

    fn was_answered(&self, mut kept: MutexGuard<'_, Kept>) {
        kept.answered_at = Some(self.now());
        self.publish_lapses(kept);
    }

    /// Switches to the current connection, if there is one.
    pub(crate) fn look_at_connection(&self, server: &dyn ServerSession) {
        let mut kept = lock(&self.kept);
        let current = server.connection();
        if current.is_some() && !kept.knows(current) {
            kept.connection = current;
            kept.lease.connected_anew();
        }
    }

    /// True if the current connection is known, and proven.
    pub(crate) fn is_proven(&self, server: &dyn ServerSession) -> bool {
        let kept = lock(&self.kept);
        kept.knows(server.connection()) && kept.lease.is_proven()
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

    /// Sends one `sync` after another until a hold may be granted. Sends nothing if it may be at once.
    pub(crate) async fn until_may_grant(&self, path: &str) -> Result<(), ServerError> {
        let mut backoff = Backoff::up_to(self.probe_interval());
        while !lock(&self.kept).lease.may_grant(self.now()) {
            let server = self.server()?;
            match server.sync(path).await {
                Ok(exchange) => self.answered(exchange),
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
    use tokio::time::sleep;

    use super::*;
    use crate::live::scripted::{LEASE, Scripted, TIMEOUT};

    const SECOND: Duration = Duration::from_secs(1);

    fn valid_until(live: &LiveSession) -> Duration {
        live.now() + live.remaining()
    }

    /// Renews the lease by two requests that are answered at once, the wait apart.
    async fn renew(live: &LiveSession, script: &Scripted) {
        for _ in 0..2 {
            sleep(3 * SECOND).await;
            live.answered(script.exchange(live.now()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sync_before_a_grant_counts_from_its_sending() {
        let (live, script) = Scripted::open(2 * SECOND);
        sleep(TIMEOUT).await;
        let renewed = live.until_may_grant("/").await;
        renewed.expect("the server answers");
        assert!(script.has_sent(valid_until(&live) - LEASE));
    }

    #[tokio::test(start_paused = true)]
    async fn write_counts_from_its_sending() {
        let (live, script) = Scripted::open(SECOND);
        sleep(SECOND).await;
        let sent = live.now();
        sleep(2 * SECOND).await;
        live.committed(script.exchange(sent));
        sleep(3 * SECOND).await;
        live.answered(script.exchange(live.now()));
        assert_eq!(valid_until(&live), SECOND + LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn answer_over_a_connection_that_nobody_has_looked_at_counts_for_nothing() {
        let (live, script) = Scripted::open(SECOND);
        script.reconnect();
        renew(&live, &script).await;
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
        live.committed(script.exchange(live.now()));
        assert_eq!(live.may_grant(), None);
    }

    /// Nobody has looked at its answer before the session has seen the next connection.
    #[tokio::test(start_paused = true)]
    async fn write_over_an_earlier_connection_proves_no_later_one() {
        let (live, script) = Scripted::open(SECOND);
        let earlier = script.exchange(live.now());
        script.reconnect();
        live.look_at_connection(&*script);
        live.committed(earlier);
        assert_eq!(live.may_grant(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_granted_over_a_connection_that_is_not_proven() {
        let (live, script) = Scripted::open(SECOND);
        assert_eq!(live.may_grant(), Some(0));
        script.reconnect();
        live.look_at_connection(&*script);
        assert_eq!(live.may_grant(), None);
        live.committed(script.exchange(live.now()));
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
        let (live, script) = Scripted::open(SECOND);
        sleep(LEASE).await;
        renew(&live, &script).await;
        assert_eq!(live.may_grant(), Some(1));
        assert_eq!(live.standing(0), HoldState::Lost(LossReason::LeaseElapsed));
        assert_eq!(live.standing(1), HoldState::Held);
    }
}
