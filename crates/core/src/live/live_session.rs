//! One ZooKeeper session, from its opening to its end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::contender::Identity;
use crate::error::Error;
use crate::live::lease::{Beginning, Lease, Terms};
use crate::live::unsupported::Unsupported;
use crate::server::ensemble::{ConnectionState, Ensemble, ServerSession, SessionId};
use crate::server::error::{Refusal, ServerError, SessionEnd};
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
    pub(super) kept: Mutex<Kept>,
    pub(super) condition: watch::Sender<Condition>,
    /// Drawn once: a random number from the system costs a system call.
    first_identity: Identity,
    identities: AtomicU64,
    unsupported: Unsupported,
}

/// The lease, and the connection whose answers renew it.
pub(super) struct Kept {
    pub(super) lease: Lease,
    /// The number of the connection. `None` if the session began without one.
    pub(super) connection: Option<u64>,
    /// When a request was last answered through the leader.
    pub(super) answered_at: Option<Duration>,
}

/// Carries the end of the session that its user asks for. If it is dropped, the session is closed.
pub(crate) type EndRequest = watch::Sender<Option<SessionEnd>>;

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
    /// A session that has just begun, by the ensemble's clock.
    ///
    /// `unsupported` holds what earlier sessions have learned. `runtime` runs the tasks of the
    /// session.
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        server: Arc<dyn ServerSession>,
        terms: Terms,
        beginning: Beginning,
        unsupported: Unsupported,
        runtime: Handle,
    ) -> LiveSession {
        let kept = Kept {
            lease: Lease::new(beginning, terms),
            connection: server.connection(),
            answered_at: None,
        };
        let condition = Condition {
            contact: Contact::Connected,
            reconnects: 0,
            lapses: 0,
        };
        let first_identity = ensemble.identity();
        LiveSession {
            id: server.id(),
            timeout: server.timeout(),
            probe_interval: terms.probe_interval(),
            ensemble,
            runtime,
            server: Mutex::new(Some(server)),
            kept: Mutex::new(kept),
            condition: watch::Sender::new(condition),
            first_identity,
            identities: AtomicU64::new(0),
            unsupported,
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

    /// Waits until the session has a connection, or is over.
    ///
    /// Does not keep the server side open.
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

    /// An identity for a znode that is about to be created.
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
    pub(crate) fn heard_of_create<T>(&self, outcome: &Result<T, ServerError>) {
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
    pub(crate) fn creates(&self) -> bool {
        self.unsupported.creates.load(Ordering::Relaxed)
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
    ///
    /// The server may let the next one hold as soon as the server side is dropped. So first the
    /// condition says that each hold is lost.
    pub(crate) fn end(&self, end: SessionEnd) {
        self.set_contact(Contact::Ended(end));
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

    /// Polls work in the runtime of the session if it is polled outside of any runtime.
    pub(crate) async fn in_a_runtime<T>(&self, work: Pin<&mut impl Future<Output = T>>) -> T {
        let mut work = work;
        poll_fn(|context| {
            let _inside = Handle::try_current().is_err().then(|| self.runtime.enter());
            work.as_mut().poll(context)
        })
        .await
    }

    /// Runs work that must not outlast the session.
    ///
    /// If `work` fails because the session is over, the session is marked ended first. An
    /// immediate retry then waits for the next session.
    ///
    /// The caller pins the work, because an `async fn` keeps two copies of a future that it is
    /// given.
    pub(crate) async fn during<T>(
        &self,
        path: &str,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
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
