//! Sessions that outlive their sessions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::future::FutureExt;
use futures_util::stream::{self, StreamExt};
use tokio::sync::watch;

use crate::error::Error;
use crate::invalid_input::InvalidInput;
use crate::path::NodePath;
use crate::server::ensemble::{Ensemble, ServerSession, SessionId};
use crate::server::error::SessionEnd;
use crate::server::options::ConnectOptions;
use crate::server::zookeeper::{ConnectedClient, ZookeeperEnsemble};
use crate::session::breaks::Unsupported;
use crate::session::current::Current;
use crate::session::live::LiveSession;
use crate::session::opening::{check_chroot, open};
use crate::session::state::SessionState;
use crate::session::supervisor::Supervisor;

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
/// # use zookeeper_recipes_core::ConnectOptions as SimulatedOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_core::Session;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let connect_string = "zk1:2181,zk2:2181";
/// # let simulated = Session::open(simulation.ensemble("docs"), SimulatedOptions::new()).await?;
/// # let session = if true { simulated } else {
/// let session = Session::connect(connect_string).await?;
/// # session };
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

    /// Returns at once, and opens the session in the background, however long that takes.
    ///
    /// For a service that starts before its ensemble does. Until the session is open, attempts wait
    /// for it, and the [`state`](Self::state) is [`SessionState::Opening`];
    /// [`wait_connected`](Self::wait_connected) waits for it. Each failure to connect is a warning
    /// in the log, once in five seconds or less often. A chroot that does not exist is an error of
    /// the first acquisition.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use zookeeper_recipes_core::{ConnectOptions, Session};
    ///
    /// let session = Session::connect_in_background("zoo1:2181,zoo2:2181", ConnectOptions::new())?;
    /// assert!(!session.is_connected());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the connect string or an option is not well formed.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn connect_in_background(
        connect_string: &str,
        options: ConnectOptions,
    ) -> Result<Session, InvalidInput> {
        let ensemble = ZookeeperEnsemble::new(connect_string, options.clone())?;
        Session::open_in_background(Arc::new(ensemble), options)
    }

    /// Opens a session with any [`Ensemble`] in the background: see
    /// [`connect_in_background`](Self::connect_in_background).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if an option is not well formed.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn open_in_background(
        ensemble: Arc<dyn Ensemble>,
        options: ConnectOptions,
    ) -> Result<Session, InvalidInput> {
        options.check()?;
        let unsupported = Unsupported::new(&ensemble);
        Ok(Session::start(ensemble, options, unsupported, None))
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
        Ok(Session::start(ensemble, options, unsupported, Some(live)))
    }

    /// Starts the task that keeps the session.
    fn start(
        ensemble: Arc<dyn Ensemble>,
        options: ConnectOptions,
        unsupported: Unsupported,
        live: Option<Arc<LiveSession>>,
    ) -> Session {
        let (now, present) = match &live {
            Some(live) => (
                SessionState::Connected(live.id()),
                Current::Live(live.clone()),
            ),
            None => (SessionState::Opening, Current::Opening),
        };
        let (current_sender, current) = watch::channel(present);
        let (state_sender, state) = watch::channel(now);
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
        Session {
            shared: Arc::new(Shared {
                ensemble,
                current,
                state,
                close,
            }),
        }
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
    #[doc(hidden)]
    pub async fn server(&self, path: &NodePath) -> Result<Arc<dyn ServerSession>, Error> {
        loop {
            // Where it has just ended, the next one is waited for.
            if let Ok(server) = self.live(path.as_str()).await?.server() {
                return Ok(server);
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
