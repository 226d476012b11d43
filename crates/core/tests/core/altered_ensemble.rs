//! An ensemble whose sessions do what no real one does at a wish, or call a test at a moment.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, Connector, CreateMode, Created, Ensemble, Exchange, Node,
    Operation, Outcome, Reply, ServerSession, SessionId, Stat, TransactionError, Watch,
};
use zookeeper_recipes_core::{
    ConnectOptions, InvalidInput, Refusal, ServerError, Session, SessionEnd,
};
use zookeeper_recipes_simulation::Simulation;

type Function = Box<dyn FnOnce() + Send>;

/// A function of a test, called once.
#[derive(Clone, Default)]
pub(crate) struct Call(Arc<Mutex<Option<Function>>>);

impl Call {
    pub(crate) fn set(&self, call: impl FnOnce() + Send + 'static) {
        *self.0.lock().expect("no panic") = Some(Box::new(call));
    }

    fn make(&self) {
        let call = self.0.lock().expect("no panic").take();
        if let Some(call) = call {
            call();
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Call")
    }
}

/// The client of a user. It is connected with the session, unless it is connected already.
pub(crate) type UsersClient = Arc<Mutex<Option<Arc<dyn ServerSession>>>>;

/// How the sessions differ from those of the ensemble.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alterations {
    /// Called before the next transaction is sent, as if the sending thread stood still.
    pub(crate) before_transaction: Call,
    /// Called before the next create is sent, as if the sending thread stood still.
    pub(crate) before_create: Call,
    /// Called before the next probe is sent.
    pub(crate) before_sync: Call,
    /// True once the servers answer each list with the end of the session.
    pub(crate) is_over: Arc<AtomicBool>,
    /// Called when the `ServerSession` is closed or dropped, before the server hears of it.
    pub(crate) at_end: Call,
    /// The session is of a client of the user, who keeps it open.
    pub(crate) stays_open: Option<UsersClient>,
    /// No event of the session's own znodes comes.
    pub(crate) is_blind: bool,
    /// The session says that its events have no order.
    pub(crate) has_no_order: bool,
    /// Before each create, the server creates a znode of the same name and of this kind. The
    /// outcome of both is unknown.
    pub(crate) doubles_creates: Option<CreateMode>,
    /// The server does not know the outcome of the first create below this path, and applies it after
    /// this time. It applies no later write before that.
    pub(crate) applies_late: Option<(&'static str, Duration)>,
    /// The next deletion is never sent, and never answered.
    pub(crate) stalls_a_deletion: Arc<AtomicBool>,
    /// The server knows no containers.
    pub(crate) refuses_containers: bool,
    /// The answer to each list, as of a member that lags behind.
    pub(crate) lists: Arc<Mutex<Option<Vec<String>>>>,
    /// So many sessions have expired before they are up.
    pub(crate) loses_openings: Arc<AtomicU64>,
    /// The tasks of the session stand still while this is true. Its client continues.
    pub(crate) stands_still: Option<watch::Receiver<bool>>,
}

/// A session of this process, whose server does what the alterations say.
pub(crate) async fn altered(
    simulation: &Simulation,
    process: &str,
    alterations: Alterations,
) -> Session {
    let ensemble = Arc::new(Altered {
        ensemble: simulation.ensemble(process),
        alterations,
    });
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    session.expect("a session opens")
}

/// An ensemble with altered sessions.
#[derive(Debug)]
pub(crate) struct Altered {
    pub(crate) ensemble: Arc<dyn Ensemble>,
    pub(crate) alterations: Alterations,
}

impl Ensemble for Altered {
    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        if self.alterations.stays_open.is_some() {
            for option in options.of_connections() {
                option.refuse("a client that its user has connected")?;
            }
        }
        Ok(Arc::new(AlteredConnector {
            connector: self.ensemble.clone().connector(options)?,
            alterations: self.alterations.clone(),
        }))
    }

    fn now(&self) -> Duration {
        self.ensemble.now()
    }

    fn address(&self) -> String {
        self.ensemble.address()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        let mut work = self.ensemble.task(work);
        let Some(mut stands_still) = self.alterations.stands_still.clone() else {
            return work;
        };
        let in_turns = async move {
            loop {
                let _ = stands_still.wait_for(|it| !it).await;
                tokio::select! {
                    biased;
                    Ok(_) = stands_still.wait_for(|it| *it) => {}
                    () = &mut work => return,
                }
            }
        };
        in_turns.boxed()
    }
}

#[derive(Debug)]
struct AlteredConnector {
    connector: Arc<dyn Connector>,
    alterations: Alterations,
}

impl Connector for AlteredConnector {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        async {
            let openings = &self.alterations.loses_openings;
            let one_less = |left: u64| left.checked_sub(1);
            let lost = openings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            if lost.is_ok() {
                return Err(ServerError::SessionOver(SessionEnd::Expired));
            }
            let client = self.alterations.stays_open.as_ref();
            let connected = client.and_then(|it| it.lock().expect("no panic").clone());
            let server = match connected {
                Some(server) => server,
                None => self.connector.connect().await?,
            };
            if let Some(client) = client {
                *client.lock().expect("no panic") = Some(server.clone());
            }
            Ok(Arc::new(AlteredSession {
                server,
                alterations: self.alterations.clone(),
                writes: Arc::default(),
                is_closed: AtomicBool::new(false),
            }) as Arc<dyn ServerSession>)
        }
        .boxed()
    }

    fn asked_timeout(&self) -> Option<Duration> {
        let asked = self.connector.asked_timeout();
        asked.filter(|_| self.alterations.stays_open.is_none())
    }
}

#[derive(Debug)]
struct AlteredSession {
    server: Arc<dyn ServerSession>,
    alterations: Alterations,
    /// True once a create was applied late. Locked by each write that others wait for.
    writes: Arc<tokio::sync::Mutex<bool>>,
    /// True once the session of a user's client is closed on this side.
    is_closed: AtomicBool,
}

impl Drop for AlteredSession {
    fn drop(&mut self) {
        self.alterations.at_end.make();
    }
}

impl AlteredSession {
    /// Applies the first create after this time, and the others after it.
    fn apply_late<'a>(
        &'a self,
        late: Duration,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        let (server, path) = (self.server.clone(), path.to_owned());
        let (data, acl) = (data.to_owned(), acl.to_owned());
        let first = self.writes.clone().try_lock_owned();
        match first.ok().filter(|was_late| !**was_late) {
            Some(mut was_late) => {
                *was_late = true;
                tokio::spawn(async move {
                    tokio::time::sleep(late).await;
                    let _ = server.create(&path, &data, mode, &acl).await;
                    drop(was_late);
                });
                ready(Err(ServerError::outcome_unknown("it takes too long"))).boxed()
            }
            None => async move {
                let _before = self.writes.lock().await;
                server.create(&path, &data, mode, &acl).await
            }
            .boxed(),
        }
    }
}

impl ServerSession for AlteredSession {
    fn id(&self) -> SessionId {
        self.server.id()
    }

    fn timeout(&self) -> Duration {
        self.server.timeout()
    }

    fn state(&self) -> ConnectionState {
        self.server.state()
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        self.server.states()
    }

    fn connection(&self) -> Option<u64> {
        self.server.connection()
    }

    fn opened_over(&self) -> Option<u64> {
        self.server.opened_over()
    }

    fn limit_requests(&self, bytes: usize) {
        self.server.limit_requests(bytes);
    }

    fn orders_events(&self) -> bool {
        !self.alterations.has_no_order
    }

    fn own_identity(&self) -> Option<AuthId> {
        self.server.own_identity()
    }

    fn close(&self) -> Option<Arc<dyn ServerSession>> {
        self.alterations.at_end.make();
        if self.alterations.stays_open.is_none() {
            return self.server.close();
        }
        self.is_closed.store(true, Ordering::Relaxed);
        Some(Arc::new(AlteredSession {
            server: self.server.clone(),
            alterations: self.alterations.clone(),
            writes: self.writes.clone(),
            is_closed: AtomicBool::new(false),
        }))
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        self.alterations.before_create.make();
        if self.is_closed.load(Ordering::Relaxed) {
            return ready(Err(ServerError::SessionOver(SessionEnd::Closed))).boxed();
        }
        if self.alterations.refuses_containers && mode == CreateMode::Container {
            return ready(Err(ServerError::Refused(Refusal::Unimplemented))).boxed();
        }
        let late = self.alterations.applies_late;
        if let Some((_, late)) = late.filter(|(below, _)| path.starts_with(below)) {
            return self.apply_late(late, path, data, mode, acl);
        }
        let Some(before) = self.alterations.doubles_creates else {
            return self.server.create(path, data, mode, acl);
        };
        let before = self.server.create(path, data, before, acl);
        let (data, acl) = (data.to_vec(), acl.to_vec());
        async move {
            before.await?;
            self.server.create(path, &data, mode, &acl).await?;
            Err(ServerError::outcome_unknown("a test has the answer"))
        }
        .boxed()
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        let stalls = &self.alterations.stalls_a_deletion;
        if stalls.swap(false, Ordering::Relaxed) {
            return std::future::pending().boxed();
        }
        self.server.delete(path)
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        if self.alterations.is_over.load(Ordering::Relaxed) {
            return ready(Err(ServerError::SessionOver(SessionEnd::Expired))).boxed();
        }
        if let Some(names) = self.alterations.lists.lock().expect("no panic").clone() {
            return ready(Ok(names)).boxed();
        }
        self.server.list(path)
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        self.server.list_and_watch(path)
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        self.server.get(path)
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        let read = self.server.get_and_watch(path);
        async move {
            let (data, stat, watch) = read.await?;
            match self.alterations.is_blind && stat.ephemeral_owner == self.id().0 {
                true => Ok((data, stat, std::future::pending().boxed())),
                false => Ok((data, stat, watch)),
            }
        }
        .boxed()
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        self.server.exists_and_watch(path)
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        self.alterations.before_transaction.make();
        self.server.transact(operations)
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        self.server.get_each(paths)
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, Exchange> {
        self.alterations.before_sync.make();
        self.server.sync(path)
    }

    fn commit_noop(&self) -> Reply<'_, Exchange> {
        async {
            let _before = self.writes.lock().await;
            self.server.commit_noop().await
        }
        .boxed()
    }
}
