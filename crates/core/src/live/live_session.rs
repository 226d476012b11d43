//! One ZooKeeper session, from its opening to its end: its `ServerSession`, its lease, and whether
//! a server answers.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::watch;
use zookeeper_recipes_connection::Avoided;

use crate::contender::Identity;
use crate::error::Error;
use crate::hold_state::{HoldState, LossReason};
use crate::live::lease::{Lease, SessionOrigin, Terms};
use crate::retry::{Backoff, retry};
use crate::server::ensemble::{ConnectionState, Ensemble, Exchange, ServerSession, SessionId};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::sync::{lock, ready_now};

/// One ZooKeeper session: its `ServerSession`, its lease and its condition.
///
/// This value outlives the `ServerSession`, so that a hold of an ended session can report its
/// state.
pub(crate) struct LiveSession {
    pub(crate) id: SessionId,
    pub(crate) timeout: Duration,
    /// The interval between two probes.
    pub(crate) probe_interval: Duration,
    /// The time between the first probe and the second. It is random, and at most one interval.
    pub(crate) probe_phase: Duration,
    /// The longest silence of the servers that ends no hold.
    pub(crate) tolerates: Duration,
    ensemble: Arc<dyn Ensemble>,
    runtime: Handle,
    server: Mutex<Option<Arc<dyn ServerSession>>>,
    kept: Mutex<Kept>,
    condition: watch::Sender<Condition>,
    /// Drawn once: a random number from the system costs a system call.
    first_identity: Identity,
    identities: AtomicU64,
    pub(crate) unsupported: Unsupported,
}

/// The lease, and the connection whose answers renew it.
struct Kept {
    lease: Lease,
    /// How the session ended. From then on, the lease neither lapses nor counts for a hold.
    over: Option<SessionEnd>,
    /// The number of the connection. `None` if the session began without one.
    connection: Option<u64>,
    /// When a request was last answered through the leader.
    answered_at: Option<Duration>,
    /// The wait for a lease that may grant. `None` once a hold is granted.
    in_vain: Option<WaitInVain>,
    /// How many servers in a row the session has left because that wait was too long.
    servers_left: u32,
}

/// The wait after which a session leaves a server doubles at each server, at most this often.
const MOST_DOUBLINGS: u32 = 6;

/// Contenders whose turn has come wait for a lease that may grant, over one connection.
#[derive(Clone, Copy)]
struct WaitInVain {
    connection: Option<u64>,
    since: Duration,
    /// When a contender waited last. After a long pause, it is another wait.
    last: Duration,
}

impl Kept {
    /// True if this is the connection whose answers renew the lease.
    fn knows(&self, connection: Option<u64>) -> bool {
        connection.is_some() && self.connection == connection
    }

    /// Compares the lease with the clock, unless the session is over.
    fn count_lapse(&mut self, now: Duration) -> (u64, bool) {
        match self.over {
            Some(_) => self.lease.counted(),
            None => self.lease.count_lapse(now),
        }
    }
}

/// Carries the end of the session that its user asks for. If it is dropped, the session is closed.
pub(crate) type EndRequest = watch::Sender<Option<SessionEnd>>;

/// What this process knows of a session. Each change wakes the tasks that wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) contact: Contact,
    pub(crate) reconnects: u64,
    pub(crate) lapses: u64,
}

/// What is known of requests that the servers may not support. Kept from one ZooKeeper session to
/// the next: a clone shares it.
#[derive(Clone, Default)]
pub(crate) struct Unsupported {
    pub(crate) containers: Avoided,
    /// True once a server has answered a create.
    pub(crate) creates: Arc<AtomicBool>,
}

/// The contact of this process with the session's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contact {
    #[default]
    Connected,
    /// No server answers, or the server's leader does not answer it in time.
    Suspended,
    Ended(SessionEnd),
}

impl LiveSession {
    /// A session that has just begun, by the ensemble's clock.
    ///
    /// `unsupported` holds what earlier sessions have learned. `runtime` runs the tasks of the
    /// session.
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        server: Arc<dyn ServerSession>,
        terms: Terms,
        origin: SessionOrigin,
        unsupported: Unsupported,
        runtime: Handle,
    ) -> LiveSession {
        let kept = Kept {
            lease: Lease::new(origin, terms),
            over: None,
            connection: server.connection(),
            answered_at: None,
            in_vain: None,
            servers_left: 0,
        };
        let first_identity = ensemble.identity();
        LiveSession {
            id: server.id(),
            timeout: server.timeout(),
            probe_interval: terms.probe_interval(),
            probe_phase: first_identity.share_of(terms.probe_interval()),
            tolerates: terms.tolerates(),
            ensemble,
            runtime,
            server: Mutex::new(Some(server)),
            kept: Mutex::new(kept),
            condition: watch::Sender::default(),
            first_identity,
            identities: AtomicU64::new(0),
            unsupported,
        }
    }

    pub(crate) fn chroot(&self) -> &str {
        self.ensemble.chroot()
    }

    /// The error of an attempt that finds no chroot.
    pub(crate) fn missing_chroot(&self) -> Error {
        Error::MissingChroot {
            chroot: self.chroot().to_owned(),
        }
    }

    /// Refuses a chroot that does not exist. Under a missing chroot, an ensemble looks empty.
    ///
    /// This sends one read, or none if there is no chroot.
    pub(crate) async fn refuse_missing_chroot(
        &self,
        server: &dyn ServerSession,
        path: &str,
    ) -> Result<(), Error> {
        if self.chroot() == "/" {
            return Ok(());
        }
        match retry(ServerError::is_unknown, || server.get("/")).await {
            Err(error) if error.is(Refusal::NoNode) => Err(self.missing_chroot()),
            Err(error @ ServerError::SessionOver(_)) => Err(Error::at(path, self.id, error)),
            // A server that refuses the read for another reason has found the znode.
            _ => Ok(()),
        }
    }

    /// The `ServerSession`.
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

    /// Waits until the session has a connection, or is over.
    ///
    /// The future does not keep the `ServerSession` open.
    pub(crate) async fn until_connected(&self) {
        let Ok(server) = self.server() else { return };
        if server.state() != ConnectionState::Disconnected {
            return;
        }
        let mut states = server.states();
        drop(server);
        while let Some(ConnectionState::Disconnected) = states.next().await {}
    }

    pub(crate) fn now(&self) -> Duration {
        self.ensemble.now()
    }

    pub(crate) fn identity(&self) -> Identity {
        let count = self.identities.fetch_add(1, Ordering::Relaxed);
        self.first_identity.after(count)
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    pub(crate) fn condition(&self) -> Condition {
        *self.condition.borrow()
    }

    /// Notes the outcome of a create.
    ///
    /// If the server has created the znode or refused it, the server knows the request.
    pub(crate) fn note_create<T>(&self, outcome: &Result<T, ServerError>) {
        match outcome {
            // Such a create was not sent.
            Err(ServerError::Refused(Refusal::TooLong(_))) => {}
            Ok(_) | Err(ServerError::Refused(_)) => {
                self.unsupported.creates.store(true, Ordering::Relaxed);
            }
            Err(_) => {}
        }
    }

    /// True once a server has answered a create, in this session or in an earlier one.
    pub(crate) fn create_is_known(&self) -> bool {
        self.unsupported.creates.load(Ordering::Relaxed)
    }

    /// Notes the contact. Only the first end of the session counts.
    pub(crate) fn set_contact(&self, contact: Contact) {
        let contact = match contact {
            Contact::Ended(end) => Contact::Ended(self.first_end(end)),
            contact => contact,
        };
        self.condition.send_if_modified(|condition| {
            if condition.contact == contact || matches!(condition.contact, Contact::Ended(_)) {
                return false;
            }
            condition.contact = contact;
            true
        });
    }

    /// Notes the end of the session, and returns the first one.
    ///
    /// A lapse of the lease before the end is counted. None is counted later, so the reason of a
    /// loss does not depend on when somebody asks for it.
    fn first_end(&self, end: SessionEnd) -> SessionEnd {
        let mut kept = lock(&self.kept);
        kept.count_lapse(self.now());
        *kept.over.get_or_insert(end)
    }

    pub(crate) fn reconnected(&self) {
        self.condition
            .send_modify(|condition| condition.reconnects += 1);
    }

    /// Drops the `ServerSession`. From then on the server may let the next contender hold.
    pub(crate) fn drop_server(&self) {
        lock(&self.server).take();
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.condition().contact, Contact::Ended(_))
    }

    pub(crate) async fn ended(&self) -> SessionEnd {
        let mut condition = self.subscribe();
        loop {
            if let Contact::Ended(end) = condition.borrow_and_update().contact {
                return end;
            }
            // This value keeps the sender, so there is no error.
            let _ = condition.changed().await;
        }
    }

    /// Runs work in a task, until the work is done or the session has ended.
    ///
    /// The work continues if the caller is dropped. The method may be called on any thread, inside
    /// or outside a runtime. If the session has ended, it does nothing.
    pub(crate) fn in_background(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(work) = self.until_the_end(work) {
            self.spawn(work);
        }
    }

    /// As [`in_background`](Self::in_background), but the work is polled once before the return.
    /// What the work sends in that poll is sent before the return, so the server handles it before
    /// all that the caller sends later.
    ///
    /// The caller must hold no lock that the work takes.
    pub(crate) fn begin_in_background(
        self: &Arc<Self>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let Some(mut work) = self.until_the_end(work) else {
            return;
        };
        // A thread that ends can enter no runtime.
        let can_enter = !Handle::try_current().is_err_and(|gone| gone.is_thread_local_destroyed());
        if can_enter {
            // Timers must be those of the session's runtime.
            let _inside = self.runtime.enter();
            if ready_now(&mut work).is_some() {
                return;
            }
        }
        self.spawn(work);
    }

    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.runtime.spawn(self.ensemble.task(work));
    }

    /// Work that ends with the session at the latest. `None` if the session has ended.
    fn until_the_end(
        self: &Arc<Self>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Option<BoxFuture<'static, ()>> {
        if self.has_ended() {
            return None;
        }
        let live = self.clone();
        let until_the_end = async move {
            tokio::select! {
                biased;
                () = work => {}
                _ = live.ended() => {}
            }
        };
        Some(until_the_end.boxed())
    }

    /// Polls work in the runtime of the session if it is polled outside of any runtime.
    pub(crate) async fn in_a_runtime<T>(&self, work: Pin<&mut impl Future<Output = T>>) -> T {
        let mut work = work;
        poll_fn(|context| {
            let _inside = Handle::try_current().is_err().then(|| self.runtime.enter());
            work.as_mut().poll(context)
        })
        .await
    }

    /// Marks the session as ended if a request has failed because it is over.
    pub(crate) fn note_end<T>(&self, result: &Result<T, Error>) {
        if let Err(Error::SessionOver {
            session, reason, ..
        }) = result
        {
            if *session == self.id {
                self.set_contact(Contact::Ended(*reason));
            }
        }
    }

    /// Runs work that must not outlast the session.
    ///
    /// If `work` fails because the session is over, the session is marked ended first. An
    /// immediate retry then waits for the next session.
    ///
    /// The caller pins the work: see [`sync`](crate::sync).
    pub(crate) async fn during<T>(
        &self,
        path: &str,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        let over = |end| Error::at(path, self.id, ServerError::SessionOver(end));
        tokio::select! {
            biased;
            end = self.ended() => Err(over(end)),
            result = work => {
                if let (Err(Error::ContenderDeleted { .. }), Contact::Ended(end)) =
                    (&result, self.condition().contact)
                {
                    // A session that ends here deletes the znodes of its contenders.
                    return Err(over(end));
                }
                self.note_end(&result);
                result
            }
        }
    }
}

/// How answers renew the lease, and what a hold may go by.
impl LiveSession {
    /// Notes that a request was answered through the leader.
    pub(crate) fn answered(&self, exchange: Exchange) {
        let mut kept = lock(&self.kept);
        if kept.knows(exchange.connection) {
            kept.lease.answered(self.now(), exchange);
        }
        kept.answered_at = Some(self.now());
        self.publish_lapses(kept);
    }

    /// Notes that a write was committed. It proves the connection that carried it, and no other.
    pub(crate) fn committed(&self, exchange: Exchange) {
        let mut kept = lock(&self.kept);
        if kept.knows(exchange.connection) {
            kept.lease.proved(self.now());
        }
        drop(kept);
        self.answered(exchange);
    }

    /// Switches to the current connection, if there is one.
    pub(crate) fn adopt_connection(&self, server: &dyn ServerSession) {
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
        kept.knows(server.connection()) && kept.lease.proven
    }

    /// Compares the lease with the clock.
    ///
    /// The result is the number of lapses until now, and true if the lease has lapsed now.
    pub(crate) fn count_lapse(&self) -> (u64, bool) {
        self.publish_lapses(lock(&self.kept))
    }

    /// The number of lapses, or `None` if no hold may be granted now.
    pub(crate) fn may_grant(&self) -> Option<u64> {
        let may_grant = {
            let mut kept = lock(&self.kept);
            let may_grant = kept.lease.may_grant(self.now());
            if may_grant {
                (kept.in_vain, kept.servers_left) = (None, 0);
            }
            may_grant
        };
        let (lapses, lapsed) = self.count_lapse();
        (may_grant && !lapsed).then_some(lapses)
    }

    /// Sends one `sync` after another until a hold may be granted. If it may be at once, nothing is
    /// sent.
    ///
    /// If that lasts for the session timeout, the session leaves the server: it answers so late
    /// that no lease can be kept there. At each further server the session waits twice as long.
    pub(crate) async fn until_may_grant(&self, path: &str) -> Result<(), ServerError> {
        let mut backoff = Backoff::up_to(self.probe_interval);
        while !lock(&self.kept).lease.may_grant(self.now()) {
            let server = self.server()?;
            match server.sync(path).await {
                Ok(exchange) => self.answered(exchange),
                Err(ServerError::OutcomeUnknown(_)) => {}
                Err(error) => return Err(error),
            }
            if self.waits_in_vain(server.connection()) {
                server.leave_server();
            }
            drop(server);
            backoff.wait().await;
        }
        Ok(())
    }

    /// True if contenders have waited for too long over this connection.
    ///
    /// A lease that is renewed ends no wait: it may have lapsed before the next list has come.
    fn waits_in_vain(&self, connection: Option<u64>) -> bool {
        let now = self.now();
        let mut kept = lock(&self.kept);
        let is_same =
            |wait: &WaitInVain| wait.connection == connection && now <= wait.last + self.timeout;
        let since = kept.in_vain.filter(is_same).map_or(now, |wait| wait.since);
        kept.in_vain = Some(WaitInVain {
            connection,
            since,
            last: now,
        });
        let waits = now >= since + self.timeout * 2_u32.pow(kept.servers_left);
        if waits {
            kept.servers_left = (kept.servers_left + 1).min(MOST_DOUBLINGS);
        }
        waits
    }

    /// The time until the lease lapses. Zero if it has lapsed.
    pub(crate) fn remaining(&self) -> Duration {
        let valid_until = lock(&self.kept).lease.valid_until;
        valid_until.saturating_sub(self.now())
    }

    /// How long ago a request was last answered through the leader.
    pub(crate) fn last_answer(&self) -> Option<Duration> {
        let answered_at = lock(&self.kept).answered_at;
        answered_at.map(|at| self.now().saturating_sub(at))
    }

    /// When the lease lapsed last, by the ensemble's clock.
    pub(crate) fn lapsed_at(&self) -> Duration {
        lock(&self.kept).lease.lapsed_at
    }

    /// The state of a hold that was granted after this number of lapses.
    ///
    /// A lapse before the end of the session is the reason of the loss.
    pub(crate) fn hold_state(&self, lapses: u64) -> HoldState {
        let contact = self.condition().contact;
        let kept = lock(&self.kept);
        let over = kept.over;
        let (lapses_now, _) = self.publish_lapses(kept);
        match over.map_or(contact, Contact::Ended) {
            _ if lapses_now != lapses => HoldState::Lost(LossReason::LeaseElapsed),
            Contact::Ended(end) => HoldState::Lost(LossReason::Session(end)),
            Contact::Suspended => HoldState::Suspended,
            Contact::Connected => HoldState::Held,
        }
    }

    fn publish_lapses(&self, mut kept: MutexGuard<'_, Kept>) -> (u64, bool) {
        let (lapses, lapsed) = kept.count_lapse(self.now());
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
#[path = "../../tests/unit/live_session.rs"]
mod tests;
