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
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::{Notify, watch};
use tokio::task::unconstrained;
use zookeeper_client::{Acls, Client, CreateMode, Error, StateWatcher};
use zookeeper_recipes_core::ensemble::{ConnectionState, SessionId};
use zookeeper_recipes_core::{Refusal, ServerError, SessionEnd};

use crate::values::{classify, connection_state, understood};

/// The name of a guard begins with it. The id of the session and two numbers follow.
const NAME: &str = "zookeeper-recipes-session-";

/// Counts the fences of this process, so that each has names of its own.
static FENCES: AtomicU64 = AtomicU64::new(0);

/// The pause before the guard is created again after an error.
const PAUSE: Duration = Duration::from_millis(200);

/// The fence of one session.
pub(crate) struct Fence {
    client: Client,
    session: SessionId,
    guards: Guards,
    gate: watch::Sender<Gate>,
    /// Notified if the guard does not exist, and when the fence is dropped.
    missing: Arc<Notify>,
}

/// What the fence knows of the connection.
#[derive(Clone)]
struct Gate {
    state: ConnectionState,
    /// Counts the guards.
    number: u64,
    guard: Arc<str>,
    /// Has a change once the connection has broken over which the guard was created.
    since: StateWatcher,
}

impl Gate {
    /// The guard, if requests reach this session. `None` if that is not known.
    fn passes(&self) -> Option<Result<Arc<str>, ServerError>> {
        let mut since = self.since.clone();
        match self.state {
            ConnectionState::Ended(end) => Some(Err(ServerError::SessionOver(end))),
            // A task that has used up its turn would see no change.
            ConnectionState::Connected
                if unconstrained(since.changed()).now_or_never().is_none() =>
            {
                Some(Ok(self.guard.clone()))
            }
            ConnectionState::Connected | ConnectionState::Disconnected => None,
        }
    }
}

/// See [`Fence::passage`].
pub(crate) struct Passage(watch::Receiver<Gate>);

impl Passage {
    /// Waits until requests reach the session of the fence, and returns the guard.
    pub(crate) async fn opens(&mut self) -> Result<Arc<str>, ServerError> {
        loop {
            if let Some(passes) = self.0.borrow_and_update().passes() {
                return passes;
            }
            if self.0.changed().await.is_err() {
                return Err(ServerError::SessionOver(SessionEnd::Closed));
            }
        }
    }
}

impl Fence {
    /// Creates the guard in a directory, which is empty for the root.
    ///
    /// The owner of the guard is the session of the fence. A task of the current runtime creates the
    /// guard anew when needed, and ends with the session or with the fence.
    pub(crate) async fn raise(client: Client, directory: &str) -> Result<Arc<Fence>, ServerError> {
        let guards = Guards::new(&client, directory);
        let (states, guard, session) = loop {
            let states = client.state_watcher();
            match guards.create(&client).await {
                Ok((guard, session)) => break (states, guard, session),
                Err(ServerError::OutcomeUnknown(_)) => tokio::time::sleep(PAUSE).await,
                Err(ServerError::Refused(refusal)) => return Err(refused(&guards, &refusal)),
                Err(over) => return Err(over),
            }
        };
        let gate = Gate {
            state: ConnectionState::Connected,
            number: 0,
            guard,
            since: states.clone(),
        };
        let fence = Arc::new(Fence {
            client,
            session,
            guards,
            gate: watch::Sender::new(gate),
            missing: Arc::default(),
        });
        let kept = Arc::downgrade(&fence);
        tokio::spawn(keep(kept, fence.missing.clone(), states));
        Ok(fence)
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// The state of the connection. Disconnected until a new connection is known to serve this
    /// session.
    pub(crate) fn state(&self) -> ConnectionState {
        let gate = self.gate.borrow();
        match gate.passes() {
            Some(_) => gate.state,
            None => ConnectionState::Disconnected,
        }
    }

    /// The current state and each later state. The stream does not keep the fence.
    pub(crate) fn states(&self) -> BoxStream<'static, ConnectionState> {
        let mut gates = self.gate.subscribe();
        gates.mark_changed();
        stream::unfold(Some(gates), |gates| async move {
            let mut gates = gates?;
            let state = match gates.changed().await {
                Ok(()) => gates.borrow_and_update().state,
                Err(_) => ConnectionState::Ended(SessionEnd::Closed),
            };
            let ended = matches!(state, ConnectionState::Ended(_));
            Some((state, (!ended).then_some(gates)))
        })
        .boxed()
    }

    /// The number of the connection. `None` if none is known to serve this session.
    pub(crate) fn connection(&self) -> Option<u64> {
        let gate = self.gate.borrow();
        matches!(gate.passes(), Some(Ok(_))).then_some(gate.number)
    }

    /// The guard, if requests reach this session now. `None` if that is not known.
    pub(crate) fn passes(&self) -> Option<Result<Arc<str>, ServerError>> {
        self.gate.borrow().passes()
    }

    /// The passage of requests to this session. Does not keep the fence.
    pub(crate) fn passage(&self) -> Passage {
        Passage(self.gate.subscribe())
    }

    /// Notes that the guard does not exist: the session is over, or somebody has deleted the guard.
    pub(crate) fn guard_is_missing(&self) {
        self.close(ConnectionState::Disconnected);
        self.missing.notify_one();
    }

    /// Notes the owner of an ephemeral znode of this client, and deletes the znode of another
    /// session.
    pub(crate) fn check_owner(&self, path: &str, owner: SessionId) -> Result<(), ServerError> {
        if owner == self.session {
            return Ok(());
        }
        // The request is sent by the call.
        drop(self.client.delete(path, None));
        self.close(ConnectionState::Ended(SessionEnd::Expired));
        Err(ServerError::SessionOver(SessionEnd::Expired))
    }

    /// Lets no request pass in this state.
    fn close(&self, state: ConnectionState) {
        self.gate.send_if_modified(|gate| {
            let is_over = matches!(gate.state, ConnectionState::Ended(_));
            gate.state = if is_over { gate.state } else { state };
            !is_over
        });
    }

    /// Finds out which session the connection serves. The call returns false if that is not known
    /// yet.
    async fn prove(&self, since: StateWatcher) -> bool {
        let created = self.guards.create(&self.client).await;
        let own = created.and_then(|(guard, owner)| {
            self.check_owner(&guard, owner)?;
            Ok(guard)
        });
        match own {
            Ok(guard) => {
                self.open(guard.clone(), since);
                self.guards.delete_all_but(&self.client, &guard).await;
            }
            Err(ServerError::SessionOver(end)) => self.close(ConnectionState::Ended(end)),
            Err(error) => {
                tracing::warn!(target: "zookeeper_recipes", %error, "the guard of the session is not created yet");
                return false;
            }
        }
        true
    }

    /// Lets requests pass.
    fn open(&self, guard: Arc<str>, since: StateWatcher) {
        self.gate.send_modify(|gate| {
            gate.guard = guard;
            gate.number += 1;
            gate.state = ConnectionState::Connected;
            gate.since = since;
        });
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // The task that keeps the fence ends.
        self.missing.notify_one();
        for guard in self.guards.paths().iter() {
            // The request is sent by the call.
            drop(self.client.delete(guard, None));
        }
    }
}

/// The guards that may exist.
struct Guards {
    /// The path of a guard, without its number.
    prefix: String,
    paths: Mutex<Vec<Arc<str>>>,
    created: AtomicU64,
}

impl Guards {
    fn new(client: &Client, directory: &str) -> Guards {
        let fence = FENCES.fetch_add(1, Ordering::Relaxed);
        let session = client.session_id().0;
        Guards {
            prefix: format!("{directory}/{NAME}{session:x}-{fence}-"),
            paths: Mutex::default(),
            created: AtomicU64::new(0),
        }
    }

    /// Creates another guard, and returns its path and the session that owns it.
    async fn create(&self, client: &Client) -> Result<(Arc<str>, SessionId), ServerError> {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        let guard: Arc<str> = format!("{}{number}", self.prefix).into();
        self.paths().push(guard.clone());
        let mode = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        let created = understood(client.create(&guard, b"", &mode)).await;
        let (stat, _) = created.map_err(classify)?;
        Ok((guard, SessionId(stat.ephemeral_owner)))
    }

    /// Deletes the other guards. A guard whose deletion has no answer is deleted the next time.
    async fn delete_all_but(&self, client: &Client, kept: &Arc<str>) {
        let others: Vec<Arc<str>> = self
            .paths()
            .iter()
            .filter(|it| *it != kept)
            .cloned()
            .collect();
        for guard in others {
            let deleted = understood(client.delete(&guard, None)).await;
            if matches!(deleted, Ok(()) | Err(Error::NoNode)) {
                self.paths().retain(|path| *path != guard);
            }
        }
    }

    fn paths(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let state = connection_state(states.state());
        let Some(fence) = fence.upgrade() else { return };
        match state {
            ConnectionState::Connected => is_known = fence.prove(states.clone()).await,
            ConnectionState::Disconnected => fence.close(state),
            ConnectionState::Ended(_) => return fence.close(state),
        }
    }
}

/// The error of a session that may not create its guard.
fn refused(guards: &Guards, refusal: &Refusal) -> ServerError {
    let problem = format!(
        "the guard {}0 cannot be created: {refusal}; ClientEnsemble::guard_in sets another \
         directory",
        guards.prefix
    );
    ServerError::Refused(Refusal::Other(problem))
}

impl fmt::Debug for Fence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fence({})", self.session)
    }
}
