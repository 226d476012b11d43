//! Sessions that outlive their sessions.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_core::Stream;
use futures_util::future::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::backoff::Backoff;
use crate::breaks::Unsupported;
use crate::ensemble::{ConnectionState, Ensemble, ServerSession, SessionEnd, SessionId};
use crate::error::{Error, InvalidInput, Refusal, ServerError};
use crate::keeper::Keeper;
use crate::lease::Terms;
use crate::live::{Contact, LiveSession, OwnZnode};
use crate::node::{delete_all, until_gone};
use crate::options::ConnectOptions;
use crate::path::NodePath;
use crate::watch_budget::Purpose;
use crate::watching::Watching;
use crate::zookeeper::{ConnectedClient, ZookeeperEnsemble};

/// What all recipes of a process stand on: a connection to an ensemble that is kept for good.
///
/// A ZooKeeper session ends when its server has not heard of it for the session timeout; this
/// `Session` then opens a new one, and goes on until it succeeds. What was held in the old one is
/// lost, and its holds say so; a recipe built on this `Session` goes on working.
///
/// Cheap to clone; the clones are one. The session is closed when the last clone has gone, holds
/// included, or by [`close`](Self::close).
///
/// While it is connected, a session sends one `sync` in each tenth of its timeout, however many
/// recipes use it, or more often if the servers' tick leaves little time for it. The answers are
/// what [`HoldView::is_held`](crate::HoldView::is_held) stands on. After a reconnect it creates and deletes
/// one ephemeral znode, at the root or beside one of its own, to make sure that the server still
/// knows it.
///
/// ```
/// # use zookeeper_recipes_testkit::{Server, ServerOptions};
/// use zookeeper_recipes_core::Session;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = Server::start(ServerOptions::new()).await?;
/// # let connect_string = server.connect_string();
/// let session = Session::connect(&connect_string).await?;
/// println!("session {}", session.id().expect("it was just opened"));
/// session.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    ensemble: Arc<dyn Ensemble>,
    current: watch::Receiver<Current>,
    state: watch::Receiver<SessionState>,
    /// Dropped with the last handle, which the supervisor takes as a wish to close.
    close: watch::Sender<bool>,
}

#[derive(Clone)]
enum Current {
    Opening,
    Live(Arc<LiveSession>),
    Over(SessionEnd),
}

/// How it stands with a [`Session`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionState {
    /// This ZooKeeper session is open, and its server answers.
    Connected(SessionId),
    /// No answer comes, from the server or through it from its leader; this ZooKeeper session may
    /// live on.
    Suspended(SessionId),
    /// The last ZooKeeper session has expired, and a new one is being opened.
    Reopening,
    /// There will be no further ZooKeeper session.
    Over(SessionEnd),
}

impl fmt::Display for SessionState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionState::Connected(id) => write!(formatter, "connected in session {id}"),
            SessionState::Suspended(id) => write!(formatter, "no answer comes in session {id}"),
            SessionState::Reopening => formatter.write_str("a new session is being opened"),
            SessionState::Over(end) => write!(formatter, "no session any more: {end}"),
        }
    }
}

impl Session {
    /// Opens a session with the default [`ConnectOptions`].
    ///
    /// The connect string is ZooKeeper's: `host:port,host:port/chroot`. A host without a port has
    /// 2181. The chroot must exist.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] at once if the connect string is not well formed.
    /// [`Error::Connect`] at once if no name of a host has an address. [`Error::Connect`] after the
    /// connection timeout if no server has opened a session until then: its source says which host
    /// refuses connections, which cannot be reached, and at which something listens that opens no
    /// session. [`Error::MissingChroot`] if the chroot is not there.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: the session has a task of its own there. The runtime's time must
    /// be enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, it leaves at most a session without a znode, which ends by its timeout.
    pub async fn connect(connect_string: &str) -> Result<Session, Error> {
        Session::connect_with(connect_string, ConnectOptions::new()).await
    }

    /// Opens a session. Errors, panics and cancel safety are those of
    /// [`connect`](Self::connect).
    pub async fn connect_with(
        connect_string: &str,
        options: ConnectOptions,
    ) -> Result<Session, Error> {
        let ensemble = ZookeeperEnsemble::new(connect_string, options.clone())?;
        Session::open(Arc::new(ensemble), options).await
    }

    /// Goes on with a client that is already connected.
    ///
    /// Such a session cannot be reopened: once it is over, so is this. It is closed when all other
    /// clones of the client have been dropped as well. Nothing is known of when its server last
    /// heard of it, so the first hold comes once the leader has been told of it anew, after about a
    /// third of the session timeout.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] when the client's session is over.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn from_client(
        client: zookeeper_client::Client,
        options: ConnectOptions,
    ) -> Result<Session, Error> {
        Session::open(Arc::new(ConnectedClient::new(client)), options).await
    }

    /// Opens a session with any [`Ensemble`], such as a simulated one.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] when no session could be opened within the connection timeout.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn open(
        ensemble: Arc<dyn Ensemble>,
        options: ConnectOptions,
    ) -> Result<Session, Error> {
        options.check()?;
        let unsupported = Unsupported::new(&ensemble);
        let live = open(&ensemble, &options, &unsupported)
            .await
            .map_err(|not_opened| not_opened.error)?;
        check_chroot(&*ensemble, &live).await?;
        let (current_sender, current) = watch::channel(Current::Live(live.clone()));
        let (state_sender, state) = watch::channel(SessionState::Connected(live.id()));
        let (close, closing) = watch::channel(false);
        let supervisor = Supervisor {
            ensemble: ensemble.clone(),
            options,
            unsupported,
            current: current_sender,
            state: state_sender,
            closing,
        };
        tokio::spawn(ensemble.task(supervisor.run(live).boxed()));
        Ok(Session {
            shared: Arc::new(Shared {
                ensemble,
                current,
                state,
                close,
            }),
        })
    }

    /// The id of the present ZooKeeper session, or `None` while there is none.
    pub fn id(&self) -> Option<SessionId> {
        self.present().map(|live| live.id())
    }

    /// The negotiated timeout of the present ZooKeeper session, or `None` while there is none.
    pub fn timeout(&self) -> Option<Duration> {
        self.present().map(|live| live.timeout())
    }

    fn present(&self) -> Option<Arc<LiveSession>> {
        match &*self.shared.current.borrow() {
            Current::Live(live) => Some(live.clone()),
            Current::Opening | Current::Over(_) => None,
        }
    }

    /// The state now.
    pub fn state(&self) -> SessionState {
        *self.shared.state.borrow()
    }

    /// Whether its server answers.
    pub fn is_connected(&self) -> bool {
        matches!(self.state(), SessionState::Connected(_))
    }

    /// Waits until a server answers, in this ZooKeeper session or in the next one.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`] when there will be none.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again.
    pub async fn wait_connected(&self) -> Result<(), Error> {
        let over = |reason| Error::NoSession {
            path: "/".to_owned(),
            reason,
        };
        let mut state = self.shared.state.clone();
        let settled = |state: &SessionState| {
            matches!(state, SessionState::Connected(_) | SessionState::Over(_))
        };
        match state.wait_for(settled).await.as_deref() {
            Ok(SessionState::Over(reason)) => Err(over(*reason)),
            Ok(_) => Ok(()),
            Err(_) => Err(over(SessionEnd::Closed)),
        }
    }

    /// The state now, and then each later one; states that pass quickly may be skipped, but never
    /// the last.
    ///
    /// Ends after [`SessionState::Over`]. Does not keep the session open.
    pub fn states(&self) -> impl Stream<Item = SessionState> + Send + Unpin + 'static + use<> {
        let receiver = self.shared.state.clone();
        stream::unfold((receiver, true), |(mut receiver, first)| async move {
            if !first {
                receiver.changed().await.ok()?;
            }
            let state = *receiver.borrow_and_update();
            Some((state, (receiver, false)))
        })
        .boxed()
    }

    /// Closes the session and waits until the server has been told.
    ///
    /// All that is held or waited for in it is let go: holds are lost with
    /// [`SessionEnd::Closed`], attempts fail. If an attempt is not polled, its znode and those of
    /// the holds are deleted one by one, and the server keeps the session until the attempt is
    /// polled or dropped. If no server answers, it waits for at most the session timeout, after
    /// which the server ends the session by itself.
    ///
    /// # Cancel safety
    ///
    /// Once polled, the session is closed whether or not one waits for it.
    pub async fn close(self) {
        // Nobody receives where the supervisor has already ended.
        let _ = self.shared.close.send(true);
        let mut state = self.shared.state.clone();
        // An error means that the supervisor has ended, which is what is waited for.
        while state.changed().await.is_ok() {}
    }

    /// The ensemble that this is a session with.
    pub fn ensemble(&self) -> &Arc<dyn Ensemble> {
        &self.shared.ensemble
    }

    /// The present ZooKeeper session's server side, for requests of one's own. `path` is for the
    /// error.
    ///
    /// Waits while a new session is being opened. Let go of it soon: the session closes only when
    /// nobody has it any more.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`] once there will be no session any more.
    pub async fn server(&self, path: &NodePath) -> Result<Arc<dyn ServerSession>, Error> {
        loop {
            // Where it has just ended, the next one is waited for.
            if let Ok(server) = self.live(path.as_str()).await?.server() {
                return Ok(server);
            }
        }
    }

    /// The present ZooKeeper session's server side, for an observer: see [`Watching`].
    ///
    /// # Errors
    ///
    /// Those of [`server`](Self::server).
    #[doc(hidden)]
    pub async fn observing(&self, path: &NodePath) -> Result<Watching, Error> {
        loop {
            let live = self.live(path.as_str()).await?;
            if let Ok(server) = live.server() {
                return Ok(Watching::new(live, server, Purpose::Observe));
            }
        }
    }

    /// The present ZooKeeper session, once there is one.
    pub(crate) async fn live(&self, path: &str) -> Result<Arc<LiveSession>, Error> {
        let mut current = self.shared.current.clone();
        loop {
            match &*current.borrow_and_update() {
                // One that has ended is about to be replaced.
                Current::Live(live) if live.has_ended() => {}
                Current::Live(live) => return Ok(live.clone()),
                Current::Over(reason) => {
                    return Err(Error::NoSession {
                        path: path.to_owned(),
                        reason: *reason,
                    });
                }
                Current::Opening => {}
            }
            if current.changed().await.is_err() {
                let reason = SessionEnd::Closed;
                return Err(Error::NoSession {
                    path: path.to_owned(),
                    reason,
                });
            }
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("ensemble", &self.shared.ensemble)
            .field("state", &self.state())
            .finish()
    }
}

/// Why no session was opened, and whether to try again is no use.
struct NotOpened {
    error: Error,
    last: Option<SessionEnd>,
}

async fn open(
    ensemble: &Arc<dyn Ensemble>,
    options: &ConnectOptions,
    unsupported: &Unsupported,
) -> Result<Arc<LiveSession>, NotOpened> {
    let began = Instant::now();
    let failed = |seen: ServerError, last| NotOpened {
        error: Error::Connect {
            address: ensemble.address(),
            tried_for: began.elapsed(),
            cause: ensemble.obstacle().unwrap_or_else(|| Arc::new(seen)),
        },
        last,
    };
    let mut seen = ServerError::outcome_unknown("no server answered");
    let connecting = connect(ensemble, &mut seen);
    let (asked_at, server) = match timeout(options.connection_timeout, connecting).await {
        Ok(Ok(connected)) => connected,
        Ok(Err(ServerError::Refused(Refusal::BadArguments(problem)))) => {
            let error = InvalidInput::new("connect string", ensemble.address(), problem);
            return Err(NotOpened {
                error: error.into(),
                last: None,
            });
        }
        Ok(Err(ServerError::SessionOver(end))) => {
            let last = (end != SessionEnd::Expired).then_some(end);
            return Err(failed(ServerError::SessionOver(end), last));
        }
        Ok(Err(error)) => return Err(failed(error, None)),
        Err(_) => return Err(failed(seen, None)),
    };
    let terms = terms(&**ensemble, options, server.timeout()).map_err(|error| NotOpened {
        error: error.into(),
        last: None,
    })?;
    Ok(Arc::new(LiveSession::new(
        ensemble.clone(),
        server,
        terms,
        asked_at,
        unsupported.clone(),
        Handle::current(),
    )))
}

/// Asks for a session until a definite answer comes. Returns it with the time of its request, and
/// notes the last failure in `seen`.
async fn connect(
    ensemble: &Arc<dyn Ensemble>,
    seen: &mut ServerError,
) -> Result<(Option<Duration>, Arc<dyn ServerSession>), ServerError> {
    let mut backoff = Backoff::up_to(Duration::from_secs(1));
    loop {
        let asked_at = ensemble.opens_sessions().then(|| ensemble.now());
        match ensemble.connect().await {
            Ok(server) => return Ok((asked_at, server)),
            Err(unknown @ ServerError::OutcomeUnknown(_)) => *seen = unknown,
            Err(error) => return Err(error),
        }
        backoff.wait().await;
    }
}

/// Makes sure that the chroot is there: under one that is not, an ensemble passes for empty.
async fn check_chroot(ensemble: &dyn Ensemble, live: &LiveSession) -> Result<(), Error> {
    let chroot = ensemble.chroot();
    let (false, Ok(server)) = (chroot == "/", live.server()) else {
        return Ok(());
    };
    match server.get("/").await {
        Err(error) if error.is(Refusal::NoNode) => Err(Error::MissingChroot {
            chroot: chroot.to_owned(),
        }),
        // What else is wrong, the first recipe is told.
        _ => Ok(()),
    }
}

/// How the lease is counted in a session that was granted this timeout.
fn terms(
    ensemble: &dyn Ensemble,
    options: &ConnectOptions,
    granted: Duration,
) -> Result<Terms, InvalidInput> {
    let Some(tick) = options.tick else {
        let may_be_raised = !ensemble.opens_sessions() || granted > options.session_timeout;
        return Ok(Terms::untold(granted, may_be_raised));
    };
    let terms = Terms::told(granted, tick);
    if terms.can_be_kept() {
        return Ok(terms);
    }
    let problem = format!("is more than half of the session timeout, {granted:?}");
    Err(InvalidInput::new("tick", format!("{tick:?}"), problem))
}

/// The task behind a [`Session`].
struct Supervisor {
    ensemble: Arc<dyn Ensemble>,
    options: ConnectOptions,
    unsupported: Unsupported,
    current: watch::Sender<Current>,
    state: watch::Sender<SessionState>,
    closing: watch::Receiver<bool>,
}

impl Supervisor {
    async fn run(mut self, mut live: Arc<LiveSession>) {
        let end = loop {
            // Where the runtime goes down, this goes with it, and nobody is left to keep the session.
            let kept = EndedUnlessKept(live.clone());
            let end = self.keep(&live).await;
            drop(kept);
            tracing::info!(session = %live.id(), %end, "ZooKeeper session over");
            // Servers that no longer take the session's own identity may take it without.
            if !matches!(end, SessionEnd::Expired | SessionEnd::AuthenticationFailed) {
                break end;
            }
            self.current.send_replace(Current::Opening);
            self.state.send_replace(SessionState::Reopening);
            live = match self.reopen(end).await {
                Ok(live) => live,
                Err(end) => break end,
            };
            self.current.send_replace(Current::Live(live.clone()));
            self.state.send_replace(SessionState::Connected(live.id()));
        };
        self.current.send_replace(Current::Over(end));
        self.state.send_replace(SessionState::Over(end));
    }

    /// Opens the next session, after one that came to this end.
    async fn reopen(&mut self, before: SessionEnd) -> Result<Arc<LiveSession>, SessionEnd> {
        let mut backoff = Backoff::up_to(Duration::from_secs(5));
        loop {
            let attempt = async {
                let opened = open(&self.ensemble, &self.options, &self.unsupported).await;
                if opened.is_err() {
                    backoff.wait().await;
                }
                opened
            };
            let opened = tokio::select! {
                biased;
                () = closed(&mut self.closing) => return Err(SessionEnd::Closed),
                opened = attempt => opened,
            };
            match opened {
                Ok(live) => return Ok(live),
                // A client that was connected elsewhere cannot be connected again.
                Err(NotOpened {
                    last: Some(SessionEnd::Closed),
                    ..
                }) => {
                    return Err(before);
                }
                Err(NotOpened {
                    last: Some(end), ..
                }) => return Err(end),
                Err(NotOpened { error, last: None }) => {
                    tracing::warn!(%error, "no new ZooKeeper session yet");
                }
            }
        }
    }

    /// Keeps one ZooKeeper session until its end, and tells how it stands.
    async fn keep(&mut self, live: &Arc<LiveSession>) -> SessionEnd {
        let server = match live.server() {
            Ok(server) => server,
            // Somebody has been told so already.
            Err(_) => return live.ended().await,
        };
        let mut states = server.states();
        let mut keeper = Keeper::new(live, &server);
        drop(server);
        let end = loop {
            tokio::select! {
                biased;
                () = closed(&mut self.closing) => break SessionEnd::Closed,
                end = live.ended() => break end,
                state = states.next() => match state {
                    Some(ConnectionState::Ended(end)) => break end,
                    Some(state) => keeper.connection_is(state),
                    None => break SessionEnd::Closed,
                },
                () = keeper.works() => {}
                () = lapse(live) => {}
            }
            give_up_lost(live);
            self.state.send_if_modified(|state| {
                let now = match live.condition().contact {
                    Contact::Suspended => SessionState::Suspended(live.id()),
                    Contact::Connected | Contact::Ended(_) => SessionState::Connected(live.id()),
                };
                std::mem::replace(state, now) != now
            });
        };
        let server = keeper.end();
        let own = live.own_paths();
        live.end(end);
        if end == SessionEnd::Closed {
            close(live, server, &mut states, own).await;
        }
        end
    }
}

/// Deletes the znodes of the holds that a lapse of the lease has cost: one that is lost bars
/// nobody, also if its owner keeps it.
fn give_up_lost(live: &Arc<LiveSession>) {
    for node in live.take_lost() {
        node.doubt();
        let own_live = live.clone();
        live.in_background(async move {
            until_gone(&own_live, (), node.path(), || node.remove(&own_live)).await;
        });
    }
}

/// Waits until the server has been told that the session is closed, at most for its timeout.
///
/// It is told once nobody has the server side any more. An attempt that is parked half-way keeps
/// it, and with it the session: then its znodes are deleted instead, one by one.
async fn close(
    live: &Arc<LiveSession>,
    server: Weak<dyn ServerSession>,
    states: &mut BoxStream<'static, ConnectionState>,
    own: Vec<OwnZnode>,
) {
    let told = async {
        while let Some(state) = states.next().await {
            if matches!(state, ConnectionState::Ended(_)) {
                break;
            }
        }
    };
    let deleted = async {
        tokio::time::sleep(live.probe_interval()).await;
        match server.upgrade() {
            Some(server) => delete_all(&*server, &own).await,
            None => std::future::pending().await,
        }
    };
    let either = async {
        tokio::select! {
            biased;
            () = told => {}
            () = deleted => {}
        }
    };
    if timeout(live.timeout(), either).await.is_err() {
        tracing::warn!(session = %live.id(), "the server was not told of the close");
    }
}

/// Ends a session on this side when it is no longer kept, so that all who wait in it are told, also
/// in other runtimes. Does nothing where it has ended already.
struct EndedUnlessKept(Arc<LiveSession>);

impl Drop for EndedUnlessKept {
    fn drop(&mut self) {
        self.0.end(SessionEnd::Closed);
    }
}

/// Waits until the lease lapses, and takes note of it; for ever where it already has.
async fn lapse(live: &LiveSession) {
    loop {
        let (_, lapsed) = live.look_at_lease();
        if lapsed {
            return std::future::pending().await;
        }
        tokio::time::sleep(live.remaining()).await;
        if live.look_at_lease().1 {
            return;
        }
    }
}

/// Resolves when the session is to be closed: on request, or since nobody has it any more.
async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the last handle has gone.
    let _ = closing.wait_for(|close| *close).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn timeout_that_the_server_raises_tells_of_a_longer_tick() {
        let (_live, ensemble) = Scripted::open(SECOND);
        let options = ConnectOptions::new().session_timeout(30 * SECOND);
        let as_asked = terms(&*ensemble, &options, 30 * SECOND).expect("it can be kept");
        let raised = terms(&*ensemble, &options, 40 * SECOND).expect("it can be kept");
        assert_eq!(as_asked, Terms::untold(30 * SECOND, false));
        assert_eq!(raised, Terms::untold(40 * SECOND, true));
        assert_ne!(raised, Terms::untold(40 * SECOND, false));
    }

    #[tokio::test(start_paused = true)]
    async fn tick_that_leaves_no_lease_is_refused() {
        let (_live, ensemble) = Scripted::open(SECOND);
        let tick = |seconds| ConnectOptions::new().tick(SECOND * seconds);
        assert!(terms(&*ensemble, &tick(5), 10 * SECOND).is_ok());
        assert!(terms(&*ensemble, &tick(6), 10 * SECOND).is_err());
    }
}
