//! The fence: keeps the requests of a session out of every other session.
//!
//! Some servers answer a reconnect with a new session, as ClickHouse Keeper does. The client adopts
//! the new session and reports nothing. So after each reconnect the fence creates an ephemeral
//! znode, the *guard*: the reply names the session that owns it. Requests wait until then.
//!
//! A client that has lost its connection sends some requests over the next one. So each deletion
//! and each transaction also checks that the guard exists, and the guard ends with its session.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::task::unconstrained;
use zookeeper_client::{Acls, Client, CreateMode, Error, SessionState, StateWatcher};
use zookeeper_recipes_core::ensemble::{ConnectionState, RequestError, SessionId};
use zookeeper_recipes_core::{Refusal, ServerError, SessionEnd};
use zookeeper_recipes_protocol::ErrorCode;

use crate::values::{Failure, session_end, understood};

/// The name of a guard begins with it. The id of the session and a number follow.
const NAME: &str = "zookeeper-recipes-session-";

/// Counts the guards of this process, so that each has a name of its own.
static GUARDS: AtomicU64 = AtomicU64::new(0);

/// The pause before the guard is created again after an error.
const PAUSE: Duration = Duration::from_millis(200);

/// The fence of one session.
pub(crate) struct Fence {
    client: Client,
    /// The directory of the guards. Empty for the root.
    directory: String,
    /// The guards that may exist.
    guards: Mutex<Vec<Arc<str>>>,
    pub(crate) gate: Arc<Gate>,
    /// Notified if the guard does not exist, and when the fence is dropped.
    missing: Arc<Notify>,
}

/// What the fence knows of the connection. It does not keep the fence.
pub(crate) struct Gate {
    pub(crate) session: SessionId,
    timeout: Duration,
    /// Locked while the state changes.
    open: Mutex<Open>,
    pub(crate) state: watch::Sender<ConnectionState>,
}

/// The last time at which requests were known to reach the session.
struct Open {
    /// Counts the guards.
    number: u64,
    guard: Arc<str>,
    /// Has a change once the connection has broken over which the guard was created.
    since: StateWatcher,
}

impl Gate {
    /// The guard, if requests reach this session. `None` if that is not known.
    ///
    /// If the connection has broken since the guard was created, the state says so from now on.
    pub(crate) fn passes(&self) -> Option<Result<Arc<str>, SessionEnd>> {
        let mut open = self.lock();
        match *self.state.borrow() {
            ConnectionState::Ended(end) => return Some(Err(end)),
            ConnectionState::Disconnected { .. } => return None,
            ConnectionState::Connected { .. } => {}
        }
        // A task that has used up its turn would see no change.
        if unconstrained(open.since.changed()).now_or_never().is_none() {
            return Some(Ok(open.guard.clone()));
        }
        self.state.send_replace(self.disconnected());
        None
    }

    /// Waits until requests reach the session of the fence, and returns the guard.
    pub(crate) async fn opens(&self) -> Result<Arc<str>, SessionEnd> {
        let mut states = self.state.subscribe();
        loop {
            states.mark_unchanged();
            if let Some(passes) = self.passes() {
                return passes;
            }
            // The gate keeps the sender.
            let _ = states.changed().await;
        }
    }

    /// The number of the connection. `None` if none is known to serve this session.
    pub(crate) fn connection(&self) -> Option<u64> {
        self.passes()?.ok()?;
        match *self.state.borrow() {
            ConnectionState::Connected { connection, .. } => Some(connection),
            _ => None,
        }
    }

    fn connected(&self, connection: u64) -> ConnectionState {
        ConnectionState::Connected {
            session_id: self.session.0,
            timeout: self.timeout,
            connection,
        }
    }

    fn disconnected(&self) -> ConnectionState {
        let timeout = self.timeout;
        ConnectionState::Disconnected { timeout }
    }

    /// Lets requests pass.
    fn open(&self, guard: Arc<str>, since: StateWatcher) {
        let mut open = self.lock();
        let number = open.number + 1;
        *open = Open {
            number,
            guard,
            since,
        };
        self.state.send_replace(self.connected(number));
    }

    /// Lets no request pass in this state.
    fn close(&self, state: ConnectionState) {
        let _open = self.lock();
        self.state.send_if_modified(|now| {
            let is_over = matches!(now, ConnectionState::Ended(_));
            *now = if is_over { *now } else { state };
            !is_over
        });
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fence {
    /// Creates the guard in a directory, which is empty for the root.
    ///
    /// The owner of the guard is the session of the fence. A task of the current runtime creates the
    /// guard anew when needed, and ends with the session or with the fence.
    pub(crate) async fn raise(
        client: Client,
        directory: String,
    ) -> Result<Arc<Fence>, ServerError> {
        let mut guards = Vec::new();
        let (since, guard, session) = loop {
            let (since, guard) = (client.state_watcher(), path(&client, &directory));
            guards.push(guard.clone());
            match create(&client, &guard).await {
                Ok(session) => break (since, guard, session),
                Err(Failure::Refused(code)) => return Err(refused(&guard, code)),
                Err(Failure::NoReply(RequestError::Ended(end))) => {
                    return Err(ServerError::SessionOver(end));
                }
                Err(Failure::NoReply(_)) => tokio::time::sleep(PAUSE).await,
            }
        };
        let timeout = client.session_timeout();
        let gate = Gate {
            session,
            timeout,
            open: Mutex::new(Open {
                number: 0,
                guard: guard.clone(),
                since: since.clone(),
            }),
            state: watch::Sender::new(ConnectionState::Disconnected { timeout }),
        };
        gate.open(guard, since.clone());
        let fence = Arc::new(Fence {
            client,
            directory,
            guards: Mutex::new(guards),
            gate: Arc::new(gate),
            missing: Arc::default(),
        });
        let kept = Arc::downgrade(&fence);
        tokio::spawn(keep(kept, fence.missing.clone(), since));
        Ok(fence)
    }

    /// Notes that the guard does not exist: the session is over, or somebody has deleted the guard.
    pub(crate) fn guard_is_missing(&self) {
        self.gate.close(self.gate.disconnected());
        self.missing.notify_one();
    }

    /// Notes the owner of an ephemeral znode of this client, and deletes the znode of another
    /// session.
    pub(crate) fn check_owner(&self, path: &str, owner: SessionId) -> Result<(), Failure> {
        if owner == self.gate.session {
            return Ok(());
        }
        // The request is sent by the call.
        drop(self.client.delete(path, None));
        let end = SessionEnd::Expired;
        self.gate.close(ConnectionState::Ended(end));
        Err(Failure::NoReply(RequestError::Ended(end)))
    }

    /// Finds out which session the connection serves. The call returns false if that is not known
    /// yet.
    async fn prove(&self, since: StateWatcher) -> bool {
        let guard = path(&self.client, &self.directory);
        self.guards().push(guard.clone());
        let created = create(&self.client, &guard).await;
        match created.and_then(|owner| self.check_owner(&guard, owner)) {
            Ok(()) => {
                self.gate.open(guard.clone(), since);
                self.delete_all_but(&guard).await;
            }
            Err(Failure::NoReply(RequestError::Ended(end))) => {
                self.gate.close(ConnectionState::Ended(end));
            }
            Err(failure) => {
                tracing::warn!(target: "zookeeper_recipes", error = ?failure, "the guard of the session is not created yet");
                return false;
            }
        }
        true
    }

    /// Deletes the other guards. A guard whose deletion has no answer is deleted the next time.
    async fn delete_all_but(&self, kept: &Arc<str>) {
        let mut others = self.guards().clone();
        others.retain(|guard| guard != kept);
        for guard in others {
            let deleted = understood(self.client.delete(&guard, None)).await;
            if matches!(deleted, Ok(()) | Err(Error::NoNode)) {
                self.guards().retain(|it| *it != guard);
            }
        }
    }

    fn guards(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // The task that keeps the fence ends.
        self.missing.notify_one();
        self.gate.close(ConnectionState::Ended(SessionEnd::Closed));
        for guard in self.guards().iter() {
            // The request is sent by the call.
            drop(self.client.delete(guard, None));
        }
    }
}

/// The path of another guard.
fn path(client: &Client, directory: &str) -> Arc<str> {
    let (session, number) = (
        client.session_id().0,
        GUARDS.fetch_add(1, Ordering::Relaxed),
    );
    format!("{directory}/{NAME}{session:x}-{number}").into()
}

/// Creates a guard, and returns the session that owns it.
async fn create(client: &Client, guard: &str) -> Result<SessionId, Failure> {
    let mode = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    let (stat, _) = understood(client.create(guard, b"", &mode)).await?;
    Ok(SessionId(stat.ephemeral_owner))
}

/// Handles the changes of the connection until the session is over or the fence is dropped.
async fn keep(fence: Weak<Fence>, missing: Arc<Notify>, mut states: StateWatcher) {
    let mut is_known = true;
    loop {
        tokio::select! {
            _ = states.changed() => {}
            () = missing.notified() => {}
            () = tokio::time::sleep(PAUSE), if !is_known => {}
        }
        let Some(fence) = fence.upgrade() else { return };
        match states.state() {
            SessionState::SyncConnected => is_known = fence.prove(states.clone()).await,
            SessionState::Disconnected | SessionState::ConnectedReadOnly => {
                fence.gate.close(fence.gate.disconnected());
            }
            over => return fence.gate.close(ConnectionState::Ended(session_end(over))),
        }
    }
}

/// The error of a session that may not create its guard.
fn refused(guard: &str, code: ErrorCode) -> ServerError {
    let cause = ServerError::from(code);
    let problem = format!(
        "the guard {guard} cannot be created: {cause}; ClientEnsemble::guard_in sets another \
         directory"
    );
    ServerError::Refused(Refusal::Other(problem))
}

impl fmt::Debug for Fence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fence({})", self.gate.session)
    }
}
