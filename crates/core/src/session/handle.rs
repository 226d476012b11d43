//! The session handle, which opens a new ZooKeeper session when the old one ends.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{self, Stream, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::Error;
use crate::hold::open_session::OpenSession;
use crate::invalid_input::InvalidInput;
use crate::live::live_session::SessionUse;
use crate::owner;
use crate::path::NodePath;
use crate::server::ensemble::{Ensemble, ServerSession, SessionId};
use crate::server::error::{ServerError, SessionEnd};
use crate::server::options::ConnectOptions;
use crate::server::scope::Scope;
use crate::server::zookeeper::ZookeeperEnsemble;
use crate::session::connect::{Opener, not_connected};
use crate::session::state::{SessionHealth, SessionState};
use crate::session::supervisor::{Current, Supervisor};

/// A lasting connection to a ZooKeeper ensemble, which all recipes of a process share.
///
/// The ensemble expires a ZooKeeper session if it does not hear from the client for the session
/// timeout. All holds of that session are lost. This `Session` then opens a new one, and retries until
/// one is open, so its recipes continue to work. It opens none if the servers refuse the credentials,
/// or if the ensemble has one session only, as that of a client that the user has connected.
///
/// A clone is cheap and is the same session. The session is closed by [`close`](Self::close), or
/// when its last clone and its last hold are dropped.
///
/// The session sends these requests by itself, for any number of recipes:
///
/// | | requests | round trips | watches |
/// |---|---|---|---|
/// | each tenth of the session timeout, or less if the servers' tick is long | 1 (`sync`) | 1 | 0 |
/// | a reconnect | 1 (a transaction that changes nothing) | 1 | 0 |
/// | a reconnect, each 128 KiB of watched paths | 1 (`setWatches`) | 1 | 0 |
/// | a hold that has no watch, at the next of the tenths | 1 (`getData`) | 1 | 1 |
///
/// [`docs::lease`](crate::docs::lease) says what the answers prove.
///
/// ```
/// use zookeeper_recipes_core::Session;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let connect_string = "zk1:2181,zk2:2181";
/// # let simulated = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
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
    shared: Arc<SharedSession>,
}

struct SharedSession {
    opener: Arc<Opener>,
    scope: Scope,
    owner: Arc<str>,
    current: watch::Receiver<Current>,
    session_use: Arc<SessionUse>,
    runtime: Handle,
}

impl Session {
    /// Opens a session with the default [`ConnectOptions`].
    ///
    /// The connect string has ZooKeeper's form: `host:port,host:port/chroot`. The default port is
    /// 2181. The chroot must exist. Each address of each name is a host. They are tried in random
    /// order. A name that does not resolve yet is looked up again, as a host that refuses connections
    /// is tried again.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] at once if the connect string is not well formed, a host is to be
    ///   encrypted without [`ConnectOptions::tls`](crate::ConnectOptions), or the clock of the tokio
    ///   runtime is paused: timeouts would pass before a server can answer.
    /// * [`Error::Connect`] after the connection timeout if no server has opened a session. The
    ///   error says of each host what is wrong with it.
    /// * [`Error::MissingChroot`] if the chroot does not exist.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, because the session runs a task there. The time driver of the
    /// runtime must be enabled.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, it leaves at most a session without a znode. That session ends by
    /// its timeout.
    pub async fn connect(connect_string: &str) -> Result<Session, Error> {
        Session::connect_with(connect_string, ConnectOptions::new()).await
    }

    /// As [`connect`](Self::connect), with these options. An option that is not well formed is
    /// [`Error::InvalidInput`], too.
    pub async fn connect_with(
        connect_string: &str,
        options: ConnectOptions,
    ) -> Result<Session, Error> {
        let ensemble = ZookeeperEnsemble::new(connect_string)?;
        Session::open(Arc::new(ensemble), options).await
    }

    /// Returns at once, and opens the session in the background.
    ///
    /// Use this for a service that starts before its ensemble. The session retries without a
    /// limit, and logs each failure as a warning. Until the session is open, attempts wait, and the
    /// [`state`](Self::state) is [`SessionState::Opening`]. If the chroot does not exist, the first
    /// acquisition fails. If an option does not fit the servers, the session is over with
    /// [`SessionEnd::InvalidOptions`].
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
        let ensemble = ZookeeperEnsemble::new(connect_string)?;
        Session::open_in_background(Arc::new(ensemble), options)
    }

    /// As [`connect_in_background`](Self::connect_in_background), with any [`Ensemble`].
    pub fn open_in_background(
        ensemble: Arc<dyn Ensemble>,
        options: ConnectOptions,
    ) -> Result<Session, InvalidInput> {
        Ok(Session::start(Opener::new(ensemble, options)?, None))
    }

    /// As [`connect_with`](Self::connect_with), with any [`Ensemble`], such as a simulated one. An
    /// option that the ensemble cannot use is [`Error::InvalidInput`], too: see [`ConnectOptions`].
    pub async fn open(
        ensemble: Arc<dyn Ensemble>,
        options: ConnectOptions,
    ) -> Result<Session, Error> {
        let opener = Opener::new(ensemble, options)?;
        let open = opener.open(opener.options.connection_timeout).await;
        let open = open.map_err(|not_opened| not_opened.error)?;
        if let Ok(server) = open.live.server() {
            let check = open.live.refuse_missing_chroot(&server, "/");
            // The first acquisition reports any other error.
            if let Ok(Err(missing @ Error::MissingChroot { .. })) =
                timeout(opener.options.connection_timeout, check).await
            {
                return Err(missing);
            }
        }
        Ok(Session::start(opener, Some(open)))
    }

    pub(crate) fn start(opener: Opener, opened: Option<Arc<OpenSession>>) -> Session {
        let opener = Arc::new(opener);
        let options = &opener.options;
        let scope = options.scope(&opener.ensemble.facts().chroot);
        let owner = owner::of_this_process(options.owner.as_deref());
        let (sender, current) = watch::channel(Current::new(opened.clone()));
        let (session_use, asked_to_close) = watch::channel(false);
        let supervisor = Supervisor {
            opener: opener.clone(),
            current: sender,
            asked_to_close,
        };
        tokio::spawn(opener.ensemble.task(supervisor.run(opened).boxed()));
        Session {
            shared: Arc::new(SharedSession {
                opener,
                scope,
                owner,
                current,
                session_use: Arc::new(session_use),
                runtime: Handle::current(),
            }),
        }
    }

    /// The id of the current ZooKeeper session, or `None` if none is open.
    pub fn id(&self) -> Option<SessionId> {
        self.current().map(|open| open.live.id)
    }

    /// The negotiated timeout of the current ZooKeeper session, or `None` if none is open.
    pub fn timeout(&self) -> Option<Duration> {
        self.current().map(|open| open.live.timeout)
    }

    pub(crate) fn current(&self) -> Option<Arc<OpenSession>> {
        self.shared.current.borrow().open.clone()
    }

    /// The current state.
    ///
    /// [`SessionState::Ended`] after the runtime of the session has shut down.
    pub fn state(&self) -> SessionState {
        self.shared.current.borrow().state
    }

    /// The health of the session at this moment. The call sends nothing.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
    /// println!("{}", session.health()); // connected in session 0x1, 6.7s of the lease left, ...
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> SessionHealth {
        let open = self.current();
        let lease_left = open.as_ref().map(|open| open.live.remaining());
        SessionHealth {
            state: self.state(),
            lease_left: lease_left.unwrap_or_default(),
            last_answer: open.and_then(|open| open.live.last_answer()),
        }
    }

    /// The longest single silence of the servers that ends no hold of this session.
    ///
    /// `None` if no ZooKeeper session is open. The call sends nothing.
    ///
    /// A silence is a time in which no server answers: a broken network, an election, a long pause
    /// of the leader. It is counted from when the probe after the last answer was due. The figure
    /// is for the worst moment, and for answers that come at once. A longer silence can end the
    /// holds. So can a shorter one that follows another too soon. [`docs::tick`](crate::docs::tick)
    /// has the figures: 3.25 s with a session timeout of 10 s, and 7.25 s if a
    /// [`tick`](ConnectOptions::tick) of 500 ms is set.
    pub fn tolerated_silence(&self) -> Option<Duration> {
        self.current().map(|open| open.live.tolerated_silence)
    }

    /// True if a ZooKeeper session is open and its server answers.
    pub fn is_connected(&self) -> bool {
        matches!(self.state(), SessionState::Connected(_))
    }

    /// Waits until a server answers, in this ZooKeeper session or in a later one.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`] if no further ZooKeeper session will be opened.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped, and the method called again.
    pub async fn wait_connected(&self) -> Result<(), Error> {
        self.until("/", |current| match current.state {
            SessionState::Connected(_) => Some(()),
            _ => None,
        })
        .await
    }

    /// A stream of the current state and each later state.
    ///
    /// States that pass quickly may be skipped, but the last state is never skipped. The stream
    /// ends after [`SessionState::Ended`], and does not keep the session open.
    pub fn states(&self) -> impl Stream<Item = SessionState> + Send + Unpin + 'static + use<> {
        let receiver = self.shared.current.clone();
        stream::unfold((receiver, true), |(mut receiver, first)| async move {
            if !first {
                receiver.changed().await.ok()?;
            }
            let state = receiver.borrow_and_update().state;
            Some((state, (receiver, false)))
        })
        .boxed()
    }

    /// Runs work that must not wait for a server without a bound, such as a try.
    ///
    /// The future may be polled on any thread. Outside of a tokio runtime, it measures the time in
    /// the runtime of the session, which must run. If it is dropped, the work is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`] at once if no server answers, and if the work takes longer than the
    /// session timeout. The errors of the work.
    pub async fn unless_disconnected<T>(
        &self,
        path: &NodePath,
        work: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        let disconnected = || {
            Err(Error::Disconnected {
                path: path.to_string(),
            })
        };
        let open = match self.state() {
            SessionState::Connected(_) => self.current(),
            // The work says why.
            SessionState::Ended(_) => return work.await,
            SessionState::Opening | SessionState::Suspended(_) => None,
        };
        let Some(open) = open else {
            return disconnected();
        };
        let live = &open.live;
        let in_time = pin!(async { timeout(live.timeout, work).await });
        let done = live.in_a_runtime(in_time).await;
        done.unwrap_or_else(|_| disconnected())
    }

    /// Replaces the hosts, so that an ensemble can be moved while its services run.
    ///
    /// The call returns at once. A session that is connected to a host which stays listed keeps its
    /// connection. Any other one moves to a new host as soon as an address is known, at the cost of a
    /// reconnect: requests without a reply have an unknown outcome, and each hold is
    /// [`Suspended`](crate::HoldState::Suspended) meanwhile. Names that do not resolve yet are looked
    /// up again each two seconds. Later ZooKeeper sessions of this handle use the new hosts, too. The
    /// [`Ensemble`], and the errors that name it, keep the old ones.
    ///
    /// The new hosts must be servers of the same ensemble: the session and its holds are lost if no
    /// new host knows the session, or if none answers within the session timeout. The chroot must be
    /// the same. The options stay as they are.
    ///
    /// ```
    /// # fn example(session: zookeeper_recipes_core::Session) -> Result<(), Box<dyn std::error::Error>> {
    /// // The ensemble grows by zk4 and zk5, and loses zk1 and zk2.
    /// session.set_hosts("zk3:2181,zk4:2181,zk5:2181/app")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the connect string is not well formed, has another chroot, contradicts the
    /// options of TLS, or if the ensemble connects with hosts of its own. The hosts are as before then.
    pub fn set_hosts(&self, connect_string: &str) -> Result<(), InvalidInput> {
        self.shared.opener.connector.set_hosts(connect_string)
    }

    /// Closes the session, and waits until the server has confirmed it.
    ///
    /// All holds of the session are lost with [`SessionEnd::Closed`], and all its attempts fail.
    /// This is [no loss](crate::LossReason::is_own_close) for events and metrics.
    ///
    /// If no server answers, this waits for at most the session timeout. The server then ends the
    /// session by itself.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the session is closed all the same.
    pub async fn close(self) {
        // An error means that the supervisor has ended already.
        let _ = self.shared.session_use.send(true);
        let mut current = self.shared.current.clone();
        // An error means that the supervisor has ended, and the loop waits for this.
        while current.changed().await.is_ok() {}
    }

    /// How many bytes the paths of further ephemeral znodes of this session may have.
    ///
    /// Each contender, each member of a group and each ephemeral znode of a guarded transaction
    /// counts until its deletion is confirmed: 4 bytes, and the path with the chroot. If too few bytes
    /// are left, an attempt fails with
    /// [`Refusal::TooManyEphemerals`](crate::Refusal::TooManyEphemerals). A session begins with 1,024
    /// bytes less than [`ConnectOptions::jute_maxbuffer`].
    ///
    /// Ephemeral znodes that you create by the session's [`server`](Self::server) do not count. `None`
    /// if no ZooKeeper session is open.
    pub fn ephemeral_bytes_left(&self) -> Option<usize> {
        self.current().map(|open| open.znodes.ephemerals.left())
    }

    /// A use of the session, which keeps it open.
    pub(crate) fn session_use(&self) -> &Arc<SessionUse> {
        &self.shared.session_use
    }

    /// The owner of the contenders of this process: `service@host:pid`.
    ///
    /// It is the data of each contender's znode, unless the options of a recipe set the data.
    /// [`ConnectOptions::owner`] sets the service.
    pub fn owner(&self) -> &str {
        &self.shared.owner
    }

    /// The error of a caller to whom no server has answered for this time.
    ///
    /// [`Error::OutcomeUnknown`], or [`Error::Connect`] with the reason if no ZooKeeper session is
    /// open.
    // Hidden: for the other crates of the project.
    #[doc(hidden)]
    pub fn no_answer(&self, path: &NodePath, waited: Duration) -> Error {
        let silence = format!("no server answered within {waited:.1?}");
        let silence = ServerError::outcome_unknown(silence);
        let opener = &self.shared.opener;
        match self.id() {
            Some(id) => Error::at(path.as_str(), id, silence),
            None => not_connected(&*opener.ensemble, &*opener.connector, waited, silence),
        }
    }

    /// The ensemble of this session.
    pub fn ensemble(&self) -> &Arc<dyn Ensemble> {
        &self.shared.opener.ensemble
    }

    /// Another session of the same ensemble, with the same options and in the same runtime. `None` if
    /// the ensemble has one session only.
    // Hidden: for recipes with more ephemeral znodes than one session can have.
    #[doc(hidden)]
    pub fn another(&self) -> Option<Session> {
        let options = self.shared.opener.options.clone();
        let opener = Opener::new(self.ensemble().clone(), options).ok()?;
        opener.asked_timeout()?;
        let _inside = self.shared.runtime.enter();
        Some(Session::start(opener, None))
    }

    /// The runtime in which the session was opened.
    // Hidden: for recipes whose background must not depend on the caller's runtime.
    #[doc(hidden)]
    pub fn runtime(&self) -> &Handle {
        &self.shared.runtime
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.shared.scope
    }

    /// The [`ServerSession`] of the current ZooKeeper session, for the caller's own requests.
    ///
    /// The call waits while a new session is being opened. Drop the result soon: the session closes
    /// only after the last reference to it is dropped. `path` appears in the error.
    ///
    /// Do not write to the znode of a contender: the waiters take the write for a release.
    ///
    /// # Errors
    ///
    /// [`Error::NoSession`] if no further ZooKeeper session will be opened.
    pub async fn server(&self, path: &NodePath) -> Result<Arc<ServerSession>, Error> {
        loop {
            // If the session has just ended, wait for the next session.
            if let Ok(server) = self.until_open(path.as_str()).await?.live.server() {
                return Ok(server);
            }
        }
    }

    /// Waits for a ZooKeeper session that has not ended, and returns it.
    pub(crate) async fn until_open(&self, path: &str) -> Result<Arc<OpenSession>, Error> {
        // The supervisor is about to replace a session that has ended.
        let is_open = |open: &&Arc<OpenSession>| !open.live.has_ended();
        self.until(path, |current| {
            current.open.as_ref().filter(is_open).cloned()
        })
        .await
    }

    /// Waits until `found` returns a value, or the session is over for good.
    async fn until<T>(
        &self,
        path: &str,
        mut found: impl FnMut(&Current) -> Option<T>,
    ) -> Result<T, Error> {
        let mut value = None;
        let mut current = self.shared.current.clone();
        let settled = current.wait_for(|current| {
            value = found(current);
            value.is_some() || matches!(current.state, SessionState::Ended(_))
        });
        let reason = match settled.await.as_deref() {
            Ok(Current {
                state: SessionState::Ended(reason),
                ..
            }) => *reason,
            _ => SessionEnd::Closed,
        };
        value.ok_or_else(|| Error::NoSession {
            path: path.to_owned(),
            reason,
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("ensemble", self.ensemble())
            .field("state", &self.state())
            .finish()
    }
}
