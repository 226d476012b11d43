//! One ZooKeeper session, from its opening to its end.

use std::any::Any;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::backoff::Backoff;
use crate::contender::Identity;
use crate::error::Error;
use crate::hold_state::{HoldState, LossReason};
use crate::server::ensemble::{Ensemble, ServerSession, SessionId};
use crate::server::error::{ServerError, SessionEnd};
use crate::session::breaks::{Connection, Unsupported};
use crate::session::lease::{Lease, Terms};
use crate::session::own_znodes::OwnZnodes;
use crate::sync::lock;

/// One ZooKeeper session: its server side, its lease and its condition.
///
/// This value outlives the server side, so that a hold of an ended session can report its state.
pub(crate) struct LiveSession {
    id: SessionId,
    timeout: Duration,
    probe_interval: Duration,
    ensemble: Arc<dyn Ensemble>,
    runtime: Handle,
    server: Mutex<Option<Arc<dyn ServerSession>>>,
    kept: Mutex<Kept>,
    condition: watch::Sender<Condition>,
    own_znodes: Arc<OwnZnodes>,
    unsupported: Unsupported,
    attachments: Mutex<Vec<Attached>>,
}

/// A value attached to a session, one of each type, that hears the session's events.
///
/// The session does not know what its attachments are for.
pub(crate) trait Attachment: Any + Send + Sync {
    /// Makes the attachment of a session when it is first used.
    fn attach(live: &LiveSession) -> Self
    where
        Self: Sized;

    /// Called when a request sent at `sent` was answered through the leader.
    fn answered(&self, _sent: Duration) {}

    /// Called after each probe interval.
    fn tick(&self, _live: &Arc<LiveSession>, _server: &Arc<dyn ServerSession>) {}

    /// Called after each event that the supervisor handles, such as a lapse of the lease.
    fn supervised(&self, _live: &Arc<LiveSession>) {}

    /// Called when the session ends.
    fn ended(&self, _end: SessionEnd) {}
}

struct Attached {
    any: Arc<dyn Any + Send + Sync>,
    attachment: Arc<dyn Attachment>,
}

/// The lease, and the connection whose answers renew it.
struct Kept {
    lease: Lease,
    connection: Connection,
    /// The number of connections before this one.
    connections_before: u64,
    /// When a request was last answered through the leader.
    answered_at: Option<Duration>,
}

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

/// What this process knows of a session. Each change wakes the tasks that wait for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) contact: Contact,
    /// The number of reconnects.
    pub(crate) reconnects: u64,
    /// The number of lapses of the lease.
    pub(crate) lapses: u64,
}

/// The contact of this process with the session's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    Connected,
    /// No server answers, or the server's leader does not answer it in time.
    Suspended,
    Ended(SessionEnd),
}

impl LiveSession {
    /// A session that was just opened.
    ///
    /// `asked_at` is the time of the request for the session by the ensemble's clock, if the time
    /// is known. `unsupported` holds what earlier sessions have learned. `runtime` runs the tasks
    /// of the session.
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        server: Arc<dyn ServerSession>,
        terms: Terms,
        asked_at: Option<Duration>,
        unsupported: Unsupported,
        runtime: Handle,
    ) -> LiveSession {
        let kept = Kept {
            lease: Lease::new(asked_at, terms),
            connection: Connection::of(&*server),
            connections_before: 0,
            answered_at: None,
        };
        let condition = Condition {
            contact: Contact::Connected,
            reconnects: 0,
            lapses: 0,
        };
        LiveSession {
            id: server.id(),
            timeout: server.timeout(),
            probe_interval: terms.probe_interval(),
            ensemble,
            runtime,
            server: Mutex::new(Some(server)),
            kept: Mutex::new(kept),
            condition: watch::Sender::new(condition),
            own_znodes: Arc::default(),
            unsupported,
            attachments: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The interval between two probes.
    pub(crate) fn probe_interval(&self) -> Duration {
        self.probe_interval
    }

    pub(crate) fn chroot(&self) -> &str {
        self.ensemble.chroot()
    }

    /// The requests that the servers may not support.
    pub(crate) fn unsupported(&self) -> &Unsupported {
        &self.unsupported
    }

    /// The znodes of this session.
    pub(crate) fn own_znodes(&self) -> &Arc<OwnZnodes> {
        &self.own_znodes
    }

    /// The attachment of this type. The first use makes it.
    pub(crate) fn attached<T: Attachment>(&self) -> Arc<T> {
        let mut attachments = lock(&self.attachments);
        let known = attachments
            .iter()
            .find_map(|attached| attached.any.clone().downcast::<T>().ok());
        known.unwrap_or_else(|| {
            let made = Arc::new(T::attach(self));
            attachments.push(Attached {
                any: made.clone(),
                attachment: made.clone(),
            });
            made
        })
    }

    /// A copy of the list of attachments, so that they are called without the lock.
    fn attachments(&self) -> Vec<Arc<dyn Attachment>> {
        let attachments = lock(&self.attachments);
        let each = attachments
            .iter()
            .map(|attached| attached.attachment.clone());
        each.collect()
    }

    /// Tells the attachments that a probe interval has passed.
    pub(crate) fn tick(self: &Arc<Self>, server: &Arc<dyn ServerSession>) {
        for attachment in self.attachments() {
            attachment.tick(self, server);
        }
    }

    /// Tells the attachments that the supervisor has handled an event.
    pub(crate) fn supervised(self: &Arc<Self>) {
        for attachment in self.attachments() {
            attachment.supervised(self);
        }
    }

    /// The server side.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] once the session has ended.
    pub(crate) fn server(&self) -> Result<Arc<dyn ServerSession>, ServerError> {
        lock(&self.server).clone().ok_or_else(|| {
            let end = match self.condition.borrow().contact {
                Contact::Ended(end) => end,
                Contact::Connected | Contact::Suspended => SessionEnd::Closed,
            };
            ServerError::SessionOver(end)
        })
    }

    pub(crate) fn now(&self) -> Duration {
        self.ensemble.now()
    }

    /// The time and the connection of a request that is about to be sent.
    pub(crate) fn sends(&self) -> Sent {
        Sent {
            at: self.now(),
            connections_before: lock(&self.kept).connections_before,
        }
    }

    /// An identity for a znode that is about to be created.
    pub(crate) fn identity(&self) -> Identity {
        self.ensemble.identity()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    pub(crate) fn condition(&self) -> Condition {
        *self.condition.borrow()
    }

    /// Notes that a request sent at `sent` has just been answered through the leader.
    pub(crate) fn answered(&self, sent: Duration) {
        let mut kept = lock(&self.kept);
        // If the connection has broken since, another session may have got the answer.
        if kept.is_connected() {
            kept.lease.answered(self.now(), sent);
        }
        self.was_answered(kept, sent);
    }

    /// Checks that the owner of a znode that this client has created is this session.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] if another session owns the znode: the server has replaced
    /// this session.
    pub(crate) fn is_owner(&self, owner: i64) -> Result<(), ServerError> {
        match owner == self.id.0 {
            true => Ok(()),
            false => Err(ServerError::SessionOver(SessionEnd::Expired)),
        }
    }

    /// Notes the owner of an ephemeral znode whose create has been answered.
    ///
    /// The connection of the create serves the session that owns the znode. So the create proves
    /// that connection if the owner is this session. Nobody may have looked at the answer for a
    /// while, so another connection may be known now. The create says nothing about that one.
    ///
    /// # Errors
    ///
    /// [`ServerError::SessionOver`] if another session owns the znode: the server has replaced
    /// this session.
    pub(crate) fn created(&self, sent: Sent, owner: i64) -> Result<(), ServerError> {
        self.is_owner(owner)?;
        let mut kept = lock(&self.kept);
        if kept.is_connected() && sent.connections_before == kept.connections_before {
            let now = self.now();
            kept.lease.proved(now);
            kept.lease.answered(now, sent.at);
        }
        self.was_answered(kept, sent.at);
        Ok(())
    }

    fn was_answered(&self, mut kept: MutexGuard<'_, Kept>, sent: Duration) {
        kept.answered_at = Some(self.now());
        self.publish_lapses(kept);
        for attachment in self.attachments() {
            attachment.answered(sent);
        }
    }

    /// Notes the outcome of a create.
    ///
    /// If the server has created the znode or refused it, the server knows the request.
    pub(crate) fn heard_of_create<T>(&self, outcome: &Result<T, ServerError>) {
        if let Ok(_) | Err(ServerError::Refused(_)) = outcome {
            self.unsupported.creates.store(true, Ordering::Relaxed);
        }
    }

    /// True once a server has answered a create, in this session or in an earlier one.
    pub(crate) fn creates(&self) -> bool {
        self.unsupported.creates.load(Ordering::Relaxed)
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
        // A server that has never answered a create may break the connection at the proof.
        let can_be = self.creates() && kept.is_connected();
        !kept.lease.is_proven() && can_be && !self.own_znodes.is_empty()
    }

    /// Waits until the connection is proven to serve this session, for at most two timeouts.
    ///
    /// If the connection serves another session, this session must have expired by then.
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

    pub(crate) fn set_contact(&self, contact: Contact) {
        self.condition.send_if_modified(|condition| {
            if condition.contact == contact || matches!(condition.contact, Contact::Ended(_)) {
                return false;
            }
            condition.contact = contact;
            true
        });
    }

    pub(crate) fn reconnected(&self) {
        self.condition
            .send_modify(|condition| condition.reconnects += 1);
    }

    /// Ends the session on this side: wakes its waiters, and drops the server side.
    pub(crate) fn end(&self, end: SessionEnd) {
        self.set_contact(Contact::Ended(end));
        for attachment in self.attachments() {
            attachment.ended(end);
        }
        lock(&self.server).take();
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.condition().contact, Contact::Ended(_))
    }

    /// Resolves when the session is over.
    pub(crate) async fn ended(&self) -> SessionEnd {
        let mut condition = self.subscribe();
        loop {
            if let Contact::Ended(end) = condition.borrow_and_update().contact {
                return end;
            }
            if condition.changed().await.is_err() {
                return SessionEnd::Closed;
            }
        }
    }

    /// Runs work in a task, until the work is done or the session has ended.
    ///
    /// The work goes on if the caller is dropped. May be called on any thread, inside or outside
    /// a runtime. Does nothing if the session has ended.
    pub(crate) fn in_background(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        if self.has_ended() {
            return;
        }
        let live = self.clone();
        let until_the_end = async move {
            tokio::select! {
                biased;
                () = work => {}
                _ = live.ended() => {}
            }
        };
        self.runtime
            .spawn(self.ensemble.task(until_the_end.boxed()));
    }

    /// Runs work that must not outlast the session.
    ///
    /// If `work` fails because the session is over, the session is marked ended first. An
    /// immediate retry then waits for the next session.
    pub(crate) async fn during<T>(
        &self,
        path: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            end = self.ended() => Err(Error::at(path, self.id, ServerError::SessionOver(end))),
            result = work => {
                if let Err(Error::SessionOver { session, reason, .. }) = &result {
                    if *session == self.id {
                        self.end(*reason);
                    }
                }
                result
            }
        }
    }
}

impl fmt::Debug for LiveSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LiveSession")
            .field("id", &self.id)
            .field("timeout", &self.timeout)
            .field("condition", &self.condition())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
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
    async fn create_counts_from_its_sending() {
        let (live, _) = Scripted::open(SECOND);
        sleep(SECOND).await;
        let sent = live.sends();
        sleep(2 * SECOND).await;
        live.created(sent, 1).expect("the session's own");
        sleep(3 * SECOND).await;
        live.answered(live.now());
        assert_eq!(valid_until(&live), SECOND + LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn answer_over_a_connection_that_nobody_has_looked_at_counts_for_nothing() {
        let (live, script) = Scripted::open(SECOND);
        script.reconnect(2);
        renew(&live).await;
        assert_eq!(valid_until(&live), LEASE);
        live.look_at_connection(&*script);
        assert_eq!(valid_until(&live), LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn create_proves_no_connection_but_its_own() {
        let (live, script) = Scripted::open(SECOND);
        script.reconnect(1);
        live.look_at_connection(&*script);
        script.reconnect(2);
        live.created(live.sends(), 1).expect("the session's own");
        assert_eq!(live.may_grant(), None);
    }

    /// Nobody has looked at its answer before the session has seen the next connection.
    #[tokio::test(start_paused = true)]
    async fn create_over_an_earlier_connection_proves_no_later_one() {
        let (live, script) = Scripted::open(SECOND);
        let sent = live.sends();
        script.reconnect(2);
        live.look_at_connection(&*script);
        live.created(sent, 1).expect("the session's own");
        assert_eq!(live.may_grant(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_granted_over_a_connection_that_is_not_proven() {
        let (live, script) = Scripted::open(SECOND);
        assert_eq!(live.may_grant(), Some(0));
        script.reconnect(1);
        live.look_at_connection(&*script);
        assert_eq!(live.may_grant(), None);
        live.created(live.sends(), 1).expect("the session's own");
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
        script.reconnect(1);
        assert!(live.until_proven().now_or_never().is_none());
    }
}
