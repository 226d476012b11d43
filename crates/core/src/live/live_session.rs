//! One ZooKeeper session, as this process knows it: its lease, and whether a server answers.

use std::future::poll_fn;
use std::mem::take;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::contender::Identity;
use crate::error::Error;
use crate::hold_state::{HoldState, LossReason};
use crate::live::lease::{Lease, LeaseConfig, LeaseEpoch, LeaseEpochNow, SessionOrigin};
use crate::retry::{Backoff, retry};
use crate::server::ensemble::{ConnectionState, Ensemble, Exchange, ServerSession, SessionId};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::sync::{Mutex, lock, ready_now};

/// One ZooKeeper session: its `ServerSession`, which is dropped at its end, its lease and its status.
///
/// This value outlives the session, so that a hold of an ended session can report its state.
pub(crate) struct LiveSession {
    pub(crate) id: SessionId,
    pub(crate) timeout: Duration,
    /// The interval between two probes.
    pub(crate) probe_interval: Duration,
    /// The time between the first probe and the second. It is random, and at most one interval.
    pub(crate) probe_phase: Duration,
    /// The longest silence of the servers that ends no hold.
    pub(crate) tolerated_silence: Duration,
    ensemble: Arc<dyn Ensemble>,
    runtime: Handle,
    server: Mutex<Option<Arc<ServerSession>>>,
    state: watch::Sender<LiveState>,
    /// Drawn once: a random number from the system costs a system call.
    first_identity: Identity,
    identities: AtomicU64,
}

/// What this process knows of a session. Each change of the status and each lapse of the lease wakes
/// the tasks that wait for news.
pub(crate) struct LiveState {
    pub(crate) status: Status,
    lease: Lease,
    /// The number of the connection whose answers renew the lease. `None` if the session began
    /// without one.
    connection: Option<u64>,
    /// The last request that was answered through the leader.
    last_answer: Option<Exchange>,
    /// Since when the answers over the connection come too late for a lease that may grant.
    late_since: Option<Duration>,
    /// True if a contender has waited for a lease since the session left a server for that.
    is_wanted: bool,
    /// How many servers the session has left.
    servers_left: u64,
    /// True if a contender has given up its place since the last grant.
    has_given_up: bool,
}

/// Whether a server answers, and how the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Connected,
    /// No server answers, or the server's leader does not answer it in time.
    Suspended,
    /// From then on, the lease neither lapses nor counts for a hold.
    Ended(SessionEnd),
}

/// A contender gives up its place once its session has left servers this often.
const SERVERS_TO_TRY: u64 = 5;

/// The wait of a contender whose turn has come, and that has no lease which may grant.
pub(crate) struct LeaseWait {
    began: Duration,
    /// How many servers the session had left by then.
    servers_left: u64,
}

impl LiveState {
    /// True if this is the connection whose answers renew the lease.
    fn knows(&self, connection: Option<u64>) -> bool {
        connection.is_some() && self.connection == connection
    }

    /// Compares the lease with the clock, unless the session is over.
    fn count_lapse(&mut self, now: Duration) -> LeaseEpochNow {
        match self.status {
            Status::Ended(_) => self.lease.last_count(),
            _ => self.lease.count_lapse(now),
        }
    }
}

/// A use of the session. Once none exists, or its value is true, the supervisor closes the session.
pub(crate) type SessionUse = watch::Sender<bool>;

impl LiveSession {
    /// A session that has just begun. `runtime` runs its tasks.
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        server: Arc<ServerSession>,
        config: LeaseConfig,
        origin: SessionOrigin,
        runtime: Handle,
    ) -> LiveSession {
        let mut lease = Lease::new(origin, config);
        let connection = server.connection();
        // The session may have reconnected before its first request.
        if connection != server.opened_over {
            lease.connected_anew();
        }
        let state = LiveState {
            status: Status::Connected,
            lease,
            connection,
            last_answer: None,
            late_since: None,
            is_wanted: false,
            servers_left: 0,
            has_given_up: false,
        };
        let first_identity = ensemble.identity();
        LiveSession {
            id: server.id(),
            timeout: server.timeout,
            probe_interval: config.probe_interval(),
            probe_phase: first_identity.share_of(config.probe_interval()),
            tolerated_silence: config.tolerated_silence(),
            ensemble,
            runtime,
            server: Mutex::new(Some(server)),
            state: watch::Sender::new(state),
            first_identity,
            identities: AtomicU64::new(0),
        }
    }

    pub(crate) fn chroot(&self) -> &str {
        &self.ensemble.facts().chroot
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
        server: &ServerSession,
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

    /// The `ServerSession`, or [`ServerError::SessionOver`] once the session has ended.
    pub(crate) fn server(&self) -> Result<Arc<ServerSession>, ServerError> {
        let server = lock(&self.server).clone();
        server.ok_or_else(|| match self.status() {
            Status::Ended(end) => ServerError::SessionOver(end),
            _ => ServerError::SessionOver(SessionEnd::Closed),
        })
    }

    /// Waits until the session has a connection, or is over.
    ///
    /// The future does not keep the `ServerSession` open.
    pub(crate) async fn until_connected(&self) {
        let Ok(server) = self.server() else { return };
        if !matches!(server.state(), ConnectionState::Disconnected { .. }) {
            return;
        }
        let mut states = server.states();
        drop(server);
        while let Some(ConnectionState::Disconnected { .. }) = states.next().await {}
    }

    pub(crate) fn now(&self) -> Duration {
        self.ensemble.now()
    }

    pub(crate) fn identity(&self) -> Identity {
        let count = self.identities.fetch_add(1, Ordering::Relaxed);
        self.first_identity.after(count)
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<LiveState> {
        self.state.subscribe()
    }

    pub(crate) fn status(&self) -> Status {
        self.state.borrow().status
    }

    /// Sets the status. Only the first end of the session counts.
    ///
    /// No lapse of the lease is counted after the end, so the reason of a loss does not depend on when
    /// somebody asks for it.
    pub(crate) fn set_status(&self, status: Status) {
        self.state.send_if_modified(|state| {
            if state.status == status || matches!(state.status, Status::Ended(_)) {
                return false;
            }
            if let Status::Ended(_) = status {
                state.count_lapse(self.now());
            }
            state.status = status;
            true
        });
    }

    /// Takes the `ServerSession`. Once it is dropped, the ensemble may let the next contender hold.
    pub(crate) fn take_server(&self) -> Option<Arc<ServerSession>> {
        lock(&self.server).take()
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.status(), Status::Ended(_))
    }

    pub(crate) async fn ended(&self) -> SessionEnd {
        let mut state = self.subscribe();
        loop {
            if let Status::Ended(end) = state.borrow_and_update().status {
                return end;
            }
            // This value keeps the sender, so there is no error.
            let _ = state.changed().await;
        }
    }

    /// Runs work in a task, until the work is done or the session has ended.
    ///
    /// The method may be called on any thread, inside or outside a runtime. If the session has ended,
    /// it does nothing.
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

    /// As [`in_background`](Self::in_background), but the work is polled once before the return.
    ///
    /// So the server handles what the work sends then before all that the caller sends later. The
    /// caller must hold no lock that the work takes.
    pub(crate) fn begin_in_background(
        self: &Arc<Self>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut work = work.boxed();
        // A thread that ends can enter no runtime.
        let can_enter = !Handle::try_current().is_err_and(|gone| gone.is_thread_local_destroyed());
        if can_enter && !self.has_ended() {
            // Timers must be those of the session's runtime.
            let _inside = self.runtime.enter();
            if ready_now(&mut work).is_some() {
                return;
            }
        }
        self.in_background(work);
    }

    /// Polls work in the runtime of the session if it is polled outside of any runtime.
    pub(crate) async fn in_a_runtime<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> T {
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
                self.set_status(Status::Ended(*reason));
            }
        }
    }

    /// Runs work that must not outlast the session.
    ///
    /// If `work` fails because the session is over, the session is marked ended first. An
    /// immediate retry then waits for the next session.
    ///
    /// The caller pins the work: see [`sync`](crate::sync).
    pub(crate) async fn until_over<T>(
        &self,
        path: &str,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        let over = |end| Error::at(path, self.id, ServerError::SessionOver(end));
        let (mut work, mut ended) = (work, pin!(self.ended()));
        let result = poll_fn(|context| {
            // Asks for the state first, because a wait that is polled costs more.
            if let Status::Ended(end) = self.status() {
                return Poll::Ready(Err(over(end)));
            }
            match work.as_mut().poll(context) {
                Poll::Pending => ended.as_mut().poll(context).map(|end| Err(over(end))),
                done => done,
            }
        })
        .await;
        if let (Err(Error::ContenderDeleted { .. }), Status::Ended(end)) = (&result, self.status())
        {
            // A session that ends here deletes the znodes of its contenders.
            return Err(over(end));
        }
        self.note_end(&result);
        result
    }
}

/// How answers renew the lease, and what a hold may go by.
impl LiveSession {
    /// Changes the state, and compares the lease with the same reading of the clock. A lapse wakes the
    /// tasks that wait for news.
    fn change<T>(&self, change: impl FnOnce(&mut LiveState, Duration) -> T) -> T {
        let mut result = None;
        self.state.send_if_modified(|state| {
            let (known, now) = (state.lease.last_count().epoch, self.now());
            result = Some(change(state, now));
            state.count_lapse(now).epoch > known
        });
        result.expect("the change is made")
    }

    /// Notes that a request was answered through the leader.
    pub(crate) fn note_answer(&self, exchange: Exchange) {
        self.change(|state, now| {
            if state.knows(exchange.connection) {
                state.lease.note_answer(now, exchange);
                match state.lease.may_grant(now) {
                    true => (state.late_since, state.is_wanted) = (None, false),
                    false => state.late_since = state.late_since.or(Some(exchange.answered)),
                }
            }
            state.last_answer = Some(exchange);
        });
    }

    /// Notes that a write was committed. It proves the connection that carried it, and no other.
    pub(crate) fn note_commit(&self, exchange: Exchange) {
        self.change(|state, now| {
            if state.knows(exchange.connection) {
                state.lease.note_proof(now);
            }
        });
        self.note_answer(exchange);
    }

    /// Switches to the current connection, if there is one.
    pub(crate) fn adopt_connection(&self, server: &ServerSession) {
        self.change(|state, _| {
            let current = server.connection();
            if current.is_some() && !state.knows(current) {
                state.connection = current;
                state.late_since = None;
                state.lease.connected_anew();
            }
        });
    }

    /// True if the current connection is known, and proven.
    pub(crate) fn is_proven(&self, server: &ServerSession) -> bool {
        let state = self.state.borrow();
        state.knows(server.connection()) && state.lease.quorum_confirmed
    }

    /// Compares the lease with the clock, and counts a lapse.
    pub(crate) fn count_lapse(&self) -> LeaseEpochNow {
        self.change(LiveState::count_lapse)
    }

    /// The epoch of a hold that is granted now. `None` if the lease does not allow a grant.
    pub(crate) fn grant_epoch(&self) -> Option<LeaseEpoch> {
        self.change(|state, now| {
            let may_grant = state.lease.may_grant(now);
            state.has_given_up &= !may_grant;
            // The process may have been paused since the last reading of the clock.
            let LeaseEpochNow { epoch, has_lapsed } = state.count_lapse(self.now());
            (may_grant && !has_lapsed).then_some(epoch)
        })
    }

    /// Sends one `sync` after another until a hold may be granted.
    ///
    /// If it may be at once, nothing is sent. If the servers answer too late for a lease, the error
    /// is [`Error::NoLease`] in the end: `wait` counts for all calls of one contender.
    pub(crate) async fn until_may_grant(
        &self,
        path: &str,
        wait: &mut Option<LeaseWait>,
    ) -> Result<(), Error> {
        let failed = |error| Error::at(path, self.id, error);
        let mut backoff = Backoff::up_to(self.probe_interval);
        while !self.state.borrow().lease.may_grant(self.now()) {
            self.ask_for_lease(path, wait)?;
            let server = self.server().map_err(failed)?;
            match server.sync(path).await {
                Ok(exchange) => self.note_answer(exchange),
                Err(ServerError::OutcomeUnknown(_)) => {}
                Err(error) => return Err(failed(error)),
            }
            drop(server);
            backoff.wait().await;
        }
        Ok(())
    }

    /// Notes that a contender waits for a lease, or that it gives up its place.
    fn ask_for_lease(&self, path: &str, wait: &mut Option<LeaseWait>) -> Result<(), Error> {
        self.change(|state, now| {
            let wait = wait.get_or_insert(LeaseWait {
                began: now,
                servers_left: state.servers_left,
            });
            let tries = match state.has_given_up {
                true => 1,
                false => SERVERS_TO_TRY,
            };
            if state.servers_left < wait.servers_left + tries {
                state.is_wanted = true;
                return Ok(());
            }
            state.has_given_up = true;
            let answer = state.last_answer.map(Exchange::took);
            Err(Error::NoLease {
                path: path.to_owned(),
                session: self.id,
                waited: now.saturating_sub(wait.began),
                answer: answer.unwrap_or_default(),
            })
        })
    }

    /// Waits for a lease before a contender enters, if the last one of this session has got none.
    ///
    /// Otherwise each attempt of a task that tries again would bar the others for a while.
    pub(crate) async fn until_may_enter(&self, path: &str) -> Result<(), Error> {
        let has_given_up = self.state.borrow().has_given_up;
        match has_given_up {
            true => self.until_may_grant(path, &mut None).await,
            false => Ok(()),
        }
    }

    /// Leaves the server if a contender waits for a lease, and the answers over the connection have
    /// been too late for one for the session timeout.
    ///
    /// Call it after an answer: the time until the next one does not count.
    pub(crate) fn leave_late_server(&self, server: &ServerSession) {
        let leaves = self.change(|state, now| {
            let since = state.late_since;
            let is_late = since.is_some_and(|since| now >= since + self.timeout);
            let leaves = is_late && take(&mut state.is_wanted);
            if leaves {
                // A client that cannot choose stays.
                state.late_since = None;
                state.servers_left += 1;
            }
            leaves
        });
        if leaves {
            server.raw.leave_server();
        }
    }

    /// The time until the lease lapses. Zero if it has lapsed.
    pub(crate) fn remaining(&self) -> Duration {
        let valid_until = self.state.borrow().lease.valid_until;
        valid_until.saturating_sub(self.now())
    }

    /// How long ago a request was last answered through the leader.
    pub(crate) fn last_answer(&self) -> Option<Duration> {
        let last_answer = self.state.borrow().last_answer;
        last_answer.map(|last| self.now().saturating_sub(last.answered))
    }

    /// When the lease lapsed last, by the ensemble's clock.
    pub(crate) fn lapsed_at(&self) -> Duration {
        self.state.borrow().lease.lapsed_at
    }

    /// The state of a hold that was granted after this number of lapses.
    ///
    /// A lapse before the end of the session is the reason of the loss.
    pub(crate) fn hold_state(&self, epoch: LeaseEpoch) -> HoldState {
        self.change(|state, now| {
            let now = state.count_lapse(now);
            match state.status {
                _ if now.epoch != epoch => HoldState::Lost(LossReason::LeaseElapsed),
                Status::Ended(end) => HoldState::Lost(LossReason::Session(end)),
                Status::Suspended => HoldState::Suspended,
                Status::Connected => HoldState::Held,
            }
        })
    }
}

#[cfg(test)]
#[path = "../../tests/unit/live_session.rs"]
mod tests;
