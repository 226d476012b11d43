//! One ZooKeeper session, as this process knows it: its lease, and whether a server answers.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::contender::Identity;
use crate::error::Error;
use crate::hold_state::{HoldState, LossReason};
use crate::live::late_servers::LateServers;
use crate::live::lease::{Lease, LeaseConfig, LeaseEpoch, LeaseEpochNow, SessionOrigin};
use crate::retry::retry;
use crate::server::ensemble::{ConnectionState, Ensemble, Exchange, ServerSession, SessionId};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::sync::{Mutex, lock};

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
    pub(super) ensemble: Arc<dyn Ensemble>,
    pub(super) runtime: Handle,
    server: Mutex<Option<Arc<ServerSession>>>,
    pub(super) state: watch::Sender<LiveState>,
    /// Drawn once: a random number from the system costs a system call.
    first_identity: Identity,
    identities: AtomicU64,
}

/// What this process knows of a session. Each change of the status and each lapse of the lease wakes
/// the tasks that wait for news.
pub(crate) struct LiveState {
    pub(crate) status: Status,
    pub(super) lease: Lease,
    /// The number of the connection whose answers renew the lease. `None` if the session began
    /// without one.
    connection: Option<u64>,
    /// The last request that was answered through the leader.
    pub(super) last_answer: Option<Exchange>,
    pub(super) late: LateServers,
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
            late: LateServers::default(),
        };
        let first_identity = ensemble.identity();
        LiveSession {
            id: server.id,
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
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut LiveState, Duration) -> T) -> T {
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
                let may_grant = state.lease.may_grant(now);
                state.late.note_answer(exchange.answered, may_grant);
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
                state.late.connected_anew();
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
            if may_grant {
                state.late.note_grant();
            }
            // The process may have been paused since the last reading of the clock.
            let LeaseEpochNow { epoch, has_lapsed } = state.count_lapse(self.now());
            (may_grant && !has_lapsed).then_some(epoch)
        })
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
