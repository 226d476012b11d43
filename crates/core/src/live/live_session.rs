//! One ZooKeeper session, as this process knows it: its lease, and whether a server answers.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::contender::Identity;
use crate::error::Error;
use crate::hold_state::{HoldState, LossReason};
use crate::live::lease::{Lease, LeaseConfig, LeaseEpoch, LeaseEpochNow, SessionOrigin};
use crate::live::short_leases::{LeaseWait, ShortLeases};
use crate::retry::{Backoff, retry};
use crate::server::ensemble::{ConnectionState, Ensemble, Exchange, ServerSession, SessionId};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::sync::{Mutex, MutexGuard, lock, ready_now};

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
    lease_state: Mutex<LeaseState>,
    snapshot: watch::Sender<SessionSnapshot>,
    /// Drawn once: a random number from the system costs a system call.
    first_identity: Identity,
    identities: AtomicU64,
}

/// The lease, and the connection whose answers renew it.
struct LeaseState {
    lease: Lease,
    /// How the session ended. From then on, the lease neither lapses nor counts for a hold.
    over: Option<SessionEnd>,
    /// The number of the connection. `None` if the session began without one.
    connection: Option<u64>,
    /// When a request was last answered through the leader.
    answered_at: Option<Duration>,
    short: ShortLeases,
}

impl LeaseState {
    /// True if this is the connection whose answers renew the lease.
    fn knows(&self, connection: Option<u64>) -> bool {
        connection.is_some() && self.connection == connection
    }

    /// Compares the lease with the clock, unless the session is over.
    fn count_lapse(&mut self, now: Duration) -> LeaseEpochNow {
        let last = self.lease.last_count();
        if self.over.is_some() {
            return last;
        }
        let count = self.lease.count_lapse(now);
        if count.epoch > last.epoch {
            self.short.lapsed(now, self.connection);
        }
        count
    }
}

/// A use of the session. Once none exists, the supervisor closes the session.
pub(crate) struct SessionUse(watch::Sender<bool>);

impl SessionUse {
    /// The first use, and what the supervisor waits for.
    pub(crate) fn begin() -> (Arc<SessionUse>, watch::Receiver<bool>) {
        let (close, asked_to_close) = watch::channel(false);
        (Arc::new(SessionUse(close)), asked_to_close)
    }

    /// Asks the supervisor to close the current ZooKeeper session, and to open no other.
    pub(crate) fn ask_to_close(&self) {
        // An error means that the supervisor has ended already.
        let _ = self.0.send(true);
    }
}

/// What this process knows of a session. Each change wakes the tasks that wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionSnapshot {
    pub(crate) status: Status,
    pub(crate) reconnects: u64,
    pub(crate) epoch: LeaseEpoch,
}

/// Whether a server answers, and how the session ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Status {
    #[default]
    Connected,
    /// No server answers, or the server's leader does not answer it in time.
    Suspended,
    Ended(SessionEnd),
}

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
        if connection != server.opened.opened_over {
            lease.connected_anew();
        }
        let lease_state = LeaseState {
            lease,
            over: None,
            connection,
            answered_at: None,
            short: ShortLeases::new(server.timeout()),
        };
        let first_identity = ensemble.identity();
        LiveSession {
            id: server.id(),
            timeout: server.timeout(),
            probe_interval: config.probe_interval(),
            probe_phase: first_identity.share_of(config.probe_interval()),
            tolerated_silence: config.tolerated_silence(),
            ensemble,
            runtime,
            server: Mutex::new(Some(server)),
            lease_state: Mutex::new(lease_state),
            snapshot: watch::Sender::default(),
            first_identity,
            identities: AtomicU64::new(0),
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
        lock(&self.server).clone().ok_or_else(|| {
            let end = lock(&self.lease_state).over.unwrap_or(SessionEnd::Closed);
            ServerError::SessionOver(end)
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

    pub(crate) fn subscribe(&self) -> watch::Receiver<SessionSnapshot> {
        self.snapshot.subscribe()
    }

    pub(crate) fn snapshot(&self) -> SessionSnapshot {
        *self.snapshot.borrow()
    }

    /// Sets the status. Only the first end of the session counts.
    pub(crate) fn set_status(&self, status: Status) {
        let status = match status {
            Status::Ended(end) => Status::Ended(self.first_end(end)),
            status => status,
        };
        self.snapshot.send_if_modified(|snapshot| {
            if snapshot.status == status || matches!(snapshot.status, Status::Ended(_)) {
                return false;
            }
            snapshot.status = status;
            true
        });
    }

    /// Notes the end of the session, and returns the first one.
    ///
    /// No lapse of the lease is counted later, so the reason of a loss does not depend on when
    /// somebody asks for it.
    fn first_end(&self, end: SessionEnd) -> SessionEnd {
        let mut lease_state = lock(&self.lease_state);
        lease_state.count_lapse(self.now());
        *lease_state.over.get_or_insert(end)
    }

    pub(crate) fn reconnected(&self) {
        self.snapshot
            .send_modify(|snapshot| snapshot.reconnects += 1);
    }

    /// Drops the `ServerSession`. From then on the ensemble may let the next contender hold.
    pub(crate) fn drop_server_session(&self) {
        lock(&self.server).take();
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.snapshot().status, Status::Ended(_))
    }

    pub(crate) async fn ended(&self) -> SessionEnd {
        let mut snapshot = self.subscribe();
        loop {
            if let Status::Ended(end) = snapshot.borrow_and_update().status {
                return end;
            }
            // This value keeps the sender, so there is no error.
            let _ = snapshot.changed().await;
        }
    }

    /// Runs work in a task, until the work is done or the session has ended.
    ///
    /// The method may be called on any thread, inside or outside a runtime. If the session has ended,
    /// it does nothing.
    pub(crate) fn in_background(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(work) = self.until_the_end(work) {
            self.spawn(work);
        }
    }

    /// As [`in_background`](Self::in_background), but the work is polled once before the return.
    ///
    /// So the server handles what the work sends then before all that the caller sends later. The
    /// caller must hold no lock that the work takes.
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
                if let (Err(Error::ContenderDeleted { .. }), Status::Ended(end)) =
                    (&result, self.snapshot().status)
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
    pub(crate) fn note_answer(&self, exchange: Exchange) {
        let mut lease_state = lock(&self.lease_state);
        if lease_state.knows(exchange.connection) {
            lease_state.lease.note_answer(self.now(), exchange);
        }
        lease_state.answered_at = Some(self.now());
        self.publish_lapses(lease_state);
    }

    /// Notes that a write was committed. It proves the connection that carried it, and no other.
    pub(crate) fn note_commit(&self, exchange: Exchange) {
        let mut lease_state = lock(&self.lease_state);
        if lease_state.knows(exchange.connection) {
            lease_state.lease.note_proof(self.now());
        }
        drop(lease_state);
        self.note_answer(exchange);
    }

    /// Switches to the current connection, if there is one.
    pub(crate) fn adopt_connection(&self, server: &ServerSession) {
        let mut lease_state = lock(&self.lease_state);
        let current = server.connection();
        if current.is_some() && !lease_state.knows(current) {
            lease_state.connection = current;
            lease_state.lease.connected_anew();
        }
    }

    /// True if the current connection is known, and proven.
    pub(crate) fn is_proven(&self, server: &ServerSession) -> bool {
        let lease_state = lock(&self.lease_state);
        lease_state.knows(server.connection()) && lease_state.lease.quorum_confirmed
    }

    /// Compares the lease with the clock, and counts a lapse.
    pub(crate) fn count_lapse(&self) -> LeaseEpochNow {
        self.publish_lapses(lock(&self.lease_state))
    }

    /// Begins a grant if the lease allows it, and returns the number of lapses.
    pub(crate) fn begin_grant(&self) -> Option<LeaseEpoch> {
        let may_grant = {
            let mut lease_state = lock(&self.lease_state);
            let may_grant = lease_state.lease.may_grant(self.now());
            if may_grant {
                lease_state.short.granted();
            }
            may_grant
        };
        let LeaseEpochNow { epoch, has_lapsed } = self.count_lapse();
        (may_grant && !has_lapsed).then_some(epoch)
    }

    /// Sends one `sync` after another until a hold may be granted.
    ///
    /// If it may be at once, nothing is sent. If the servers answer too late for a lease, the error
    /// is [`Error::NoLease`] in the end: `wait` counts for all calls of one contender.
    pub(crate) async fn until_may_grant(
        &self,
        path: &str,
        wait: &mut LeaseWait,
    ) -> Result<(), Error> {
        let failed = |error| Error::at(path, self.id, error);
        let mut backoff = Backoff::up_to(self.probe_interval);
        while !lock(&self.lease_state).lease.may_grant(self.now()) {
            if self.gives_up(wait) {
                return Err(Error::NoLease {
                    path: path.to_owned(),
                    session: self.id,
                    waited: wait.waited,
                    answer: wait.answer,
                });
            }
            self.note_short_lease();
            let server = self.server().map_err(failed)?;
            match server.sync(path).await {
                Ok(exchange) => {
                    self.note_answer(exchange);
                    wait.note(
                        exchange,
                        &lock(&self.lease_state).short,
                        self.probe_interval,
                    );
                }
                Err(ServerError::OutcomeUnknown(_)) => {}
                Err(error) => return Err(failed(error)),
            }
            drop(server);
            backoff.wait().await;
        }
        Ok(())
    }

    /// Waits for a lease before a contender enters, if the last one of this session has got none.
    ///
    /// Otherwise each attempt of a task that tries again would bar the others for a while.
    pub(crate) async fn until_may_enter(&self, path: &str) -> Result<(), Error> {
        if !lock(&self.lease_state).short.has_given_up {
            return Ok(());
        }
        self.until_may_grant(path, &mut LeaseWait::default()).await
    }

    /// True if a contender that has waited for so long gives its place up now.
    fn gives_up(&self, wait: &LeaseWait) -> bool {
        let mut lease_state = lock(&self.lease_state);
        let gives_up = wait.is_over(&lease_state.short);
        lease_state.short.has_given_up |= gives_up;
        gives_up
    }

    /// Notes that the lease is too short for a contender whose turn has come.
    fn note_short_lease(&self) {
        let mut lease_state = lock(&self.lease_state);
        let connection = lease_state.connection;
        lease_state.short.note(self.now(), connection);
    }

    /// Leaves the server if it answers so late that no lease can be kept there.
    pub(crate) fn leave_late_server(&self, server: &ServerSession) {
        if lock(&self.lease_state).short.leaves() {
            server.leave_server();
        }
    }

    /// The time until the lease lapses. Zero if it has lapsed.
    pub(crate) fn remaining(&self) -> Duration {
        let valid_until = lock(&self.lease_state).lease.valid_until;
        valid_until.saturating_sub(self.now())
    }

    /// How long ago a request was last answered through the leader.
    pub(crate) fn last_answer(&self) -> Option<Duration> {
        let answered_at = lock(&self.lease_state).answered_at;
        answered_at.map(|at| self.now().saturating_sub(at))
    }

    /// When the lease lapsed last, by the ensemble's clock.
    pub(crate) fn lapsed_at(&self) -> Duration {
        lock(&self.lease_state).lease.lapsed_at
    }

    /// The state of a hold that was granted after this number of lapses.
    ///
    /// A lapse before the end of the session is the reason of the loss.
    pub(crate) fn hold_state(&self, epoch: LeaseEpoch) -> HoldState {
        let status = self.snapshot().status;
        let lease_state = lock(&self.lease_state);
        let over = lease_state.over;
        let now = self.publish_lapses(lease_state);
        match over.map_or(status, Status::Ended) {
            _ if now.epoch != epoch => HoldState::Lost(LossReason::LeaseElapsed),
            Status::Ended(end) => HoldState::Lost(LossReason::Session(end)),
            Status::Suspended => HoldState::Suspended,
            Status::Connected => HoldState::Held,
        }
    }

    fn publish_lapses(&self, mut lease_state: MutexGuard<'_, LeaseState>) -> LeaseEpochNow {
        let compared = lease_state.count_lapse(self.now());
        drop(lease_state);
        self.snapshot.send_if_modified(|snapshot| {
            let news = compared.epoch > snapshot.epoch;
            snapshot.epoch = snapshot.epoch.max(compared.epoch);
            news
        });
        compared
    }
}

#[cfg(test)]
#[path = "../../tests/unit/live_session.rs"]
mod tests;
