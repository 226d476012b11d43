//! An ensemble whose sessions do what no real one does at a wish, or call a test at a moment.

use std::fmt;
use std::future::{pending, ready};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::watch;
use zookeeper_recipes_connection::{DisconnectReason, Network};
use zookeeper_recipes_core::ensemble::{
    Answer, ConnectionState, Connector, CreateMode, Ensemble, EnsembleFacts, Exchange,
    OpenedSession, Operation, RawAnswer, RawReply, RawSession, RequestBody, RequestError,
    SessionId, Stat,
};
use zookeeper_recipes_core::{
    ConnectOptions, Environment, InvalidInput, ServerError, Session, SessionEnd,
};
use zookeeper_recipes_protocol::{CreateRequest, ErrorCode, Reply, ReplyBody};
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
pub(crate) type UsersClient = Arc<Mutex<Option<OpenedSession>>>;

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
    /// Called when the session is closed or dropped, before the server hears of it.
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
    let ensemble = Altered::new(simulation.ensemble(process), alterations);
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    session.expect("a session opens")
}

/// The ensemble, with altered sessions.
#[derive(Debug)]
pub(crate) struct Altered {
    facts: EnsembleFacts,
    ensemble: Arc<dyn Ensemble>,
    alterations: Alterations,
}

impl Altered {
    pub(crate) fn new(ensemble: Arc<dyn Ensemble>, alterations: Alterations) -> Arc<Altered> {
        let mut facts = ensemble.facts().clone();
        if alterations.stays_open.is_some() {
            facts.session_timeout = None;
        }
        if let Some(stands_still) = alterations.stands_still.clone() {
            let environment = facts.environment;
            facts.environment = Arc::new(StandingStill {
                environment,
                stands_still,
            });
        }
        Arc::new(Altered {
            facts,
            ensemble,
            alterations,
        })
    }
}

/// The environment of a process, whose tasks stand still at times.
#[derive(Debug)]
struct StandingStill {
    environment: Arc<dyn Environment>,
    stands_still: watch::Receiver<bool>,
}

impl Environment for StandingStill {
    fn network(&self, options: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput> {
        self.environment.network(options)
    }

    fn now(&self) -> Duration {
        self.environment.now()
    }

    fn session_timeout(&self) -> Duration {
        self.environment.session_timeout()
    }

    fn random(&self) -> u128 {
        self.environment.random()
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        let mut work = self.environment.task(work);
        let mut stands_still = self.stands_still.clone();
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

impl Ensemble for Altered {
    fn facts(&self) -> &EnsembleFacts {
        &self.facts
    }

    fn connector(
        self: Arc<Self>,
        options: &ConnectOptions,
    ) -> Result<Arc<dyn Connector>, InvalidInput> {
        if self.alterations.stays_open.is_some() {
            options.refuse_all_but(&[], "a client that its user has connected")?;
        }
        Ok(Arc::new(AlteredConnector {
            connector: self.ensemble.clone().connector(options)?,
            alterations: self.alterations.clone(),
        }))
    }
}

#[derive(Debug)]
struct AlteredConnector {
    connector: Arc<dyn Connector>,
    alterations: Alterations,
}

impl Connector for AlteredConnector {
    fn connect(&self) -> BoxFuture<'_, Result<OpenedSession, ServerError>> {
        async {
            let openings = &self.alterations.loses_openings;
            let one_less = |left: u64| left.checked_sub(1);
            let lost = openings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            if lost.is_ok() {
                return Err(ServerError::SessionOver(SessionEnd::Expired));
            }
            let client = self.alterations.stays_open.as_ref();
            let connected = client.and_then(|it| it.lock().expect("no panic").clone());
            let mut opened = match connected {
                Some(opened) => opened,
                None => self.connector.connect().await?,
            };
            if let Some(client) = client {
                *client.lock().expect("no panic") = Some(opened.clone());
            }
            let (raw, id) = (opened.raw, opened.id);
            let writes = Arc::<tokio::sync::Mutex<bool>>::default();
            let altered = |is_left| {
                Arc::new(AlteredSession {
                    raw: raw.clone(),
                    id,
                    alterations: self.alterations.clone(),
                    writes: writes.clone(),
                    is_left,
                    is_closed: AtomicBool::new(false),
                }) as Arc<dyn RawSession>
            };
            opened.left_open = client.map(|_| altered(true));
            opened.raw = altered(false);
            Ok(opened)
        }
        .boxed()
    }
}

#[derive(Debug)]
struct AlteredSession {
    raw: Arc<dyn RawSession>,
    id: SessionId,
    alterations: Alterations,
    /// True once a create was applied late. Locked by each write that others wait for.
    writes: Arc<tokio::sync::Mutex<bool>>,
    /// True if this sends the deletions of a session of a user's client, once that is closed.
    is_left: bool,
    /// True once the session of a user's client is closed on this side.
    is_closed: AtomicBool,
}

impl Drop for AlteredSession {
    fn drop(&mut self) {
        if !self.is_left {
            self.alterations.at_end.make();
        }
    }
}

fn fails(error: RequestError) -> RawReply {
    RawReply::new(ready(Err(error)))
}

fn unknown() -> RequestError {
    RequestError::Broken(DisconnectReason::Closed)
}

/// The answer to a request that no server gets.
fn answered(reply: Reply) -> RawAnswer {
    let answer = Answer {
        reply,
        sent_at: Duration::ZERO,
        answered_at: Duration::ZERO,
        connection: Exchange::UNKNOWN_CONNECTION,
    };
    Ok((answer, None))
}

impl AlteredSession {
    /// Sends a create, in another way if that is an alteration.
    fn create(&self, create: CreateRequest) -> RawReply {
        self.alterations.before_create.make();
        let request = RequestBody::Create2(create.clone());
        if self.is_closed.load(Ordering::Relaxed) {
            return fails(RequestError::Ended(SessionEnd::Closed));
        }
        let late = self.alterations.applies_late;
        if let Some((_, late)) = late.filter(|(below, _)| create.path.starts_with(below)) {
            return self.apply_late(late, request);
        }
        let Some(mode) = self.alterations.doubles_creates else {
            return self.raw.send(request);
        };
        let first = RequestBody::Create2(CreateRequest { mode, ..create });
        let (first, raw) = (self.raw.send(first), self.raw.clone());
        RawReply::new(async move {
            let (answer, watch) = first.await?;
            if answer.reply.header.error != ErrorCode::Ok {
                return Ok((answer, watch));
            }
            let (answer, watch) = raw.send(request).await?;
            if answer.reply.header.error != ErrorCode::Ok {
                return Ok((answer, watch));
            }
            Err(unknown())
        })
    }

    /// Applies the first create after this time, and the others after it.
    fn apply_late(&self, late: Duration, request: RequestBody) -> RawReply {
        let (raw, writes) = (self.raw.clone(), self.writes.clone());
        let first = writes.clone().try_lock_owned();
        match first.ok().filter(|was_late| !**was_late) {
            Some(mut was_late) => {
                *was_late = true;
                tokio::spawn(async move {
                    tokio::time::sleep(late).await;
                    let _ = raw.send(request).await;
                    drop(was_late);
                });
                fails(unknown())
            }
            None => RawReply::new(async move {
                let _before = writes.lock().await;
                raw.send(request).await
            }),
        }
    }

    fn list(&self, request: RequestBody) -> RawReply {
        if self.alterations.is_over.load(Ordering::Relaxed) {
            return fails(RequestError::Ended(SessionEnd::Expired));
        }
        match self.alterations.lists.lock().expect("no panic").clone() {
            Some(children) => {
                let reply = Reply::new(1, 1, ReplyBody::Children { children });
                RawReply::new(ready(answered(reply)))
            }
            None => self.raw.send(request),
        }
    }

    /// A read without the watch, if the watch is on a znode of the session.
    fn read_blindly(&self, request: RequestBody) -> RawReply {
        let (read, id) = (self.raw.send(request), self.id);
        RawReply::new(async move {
            let (answer, watch) = read.await?;
            let is_own = |stat: &Stat| stat.ephemeral_owner == id.0;
            let watch = match &answer.reply.body {
                ReplyBody::Data { stat, .. } if is_own(stat) => Some(pending().boxed()),
                _ => watch,
            };
            Ok((answer, watch))
        })
    }
}

impl RawSession for AlteredSession {
    fn send(&self, request: RequestBody) -> RawReply {
        match request {
            RequestBody::Create2(create) => self.create(create),
            RequestBody::CreateContainer(_) if self.alterations.refuses_containers => {
                let refused = Reply::failed(1, 1, ErrorCode::Unimplemented);
                RawReply::new(ready(answered(refused)))
            }
            RequestBody::Delete(_)
                if self
                    .alterations
                    .stalls_a_deletion
                    .swap(false, Ordering::Relaxed) =>
            {
                RawReply::new(pending())
            }
            RequestBody::GetChildren(ref read) if !read.watch => self.list(request),
            RequestBody::GetData(ref read) if read.watch && self.alterations.is_blind => {
                self.read_blindly(request)
            }
            RequestBody::Multi(ref operations)
                if matches!(&operations[..], [Operation::Check(_)]) =>
            {
                let (raw, writes) = (self.raw.clone(), self.writes.clone());
                RawReply::new(async move {
                    let _before = writes.lock().await;
                    raw.send(request).await
                })
            }
            RequestBody::Multi(_) => {
                self.alterations.before_transaction.make();
                self.raw.send(request)
            }
            RequestBody::Sync(_) => {
                self.alterations.before_sync.make();
                self.raw.send(request)
            }
            request => self.raw.send(request),
        }
    }

    fn states(&self) -> watch::Receiver<ConnectionState> {
        self.raw.states()
    }

    fn orders_events(&self) -> bool {
        !self.alterations.has_no_order
    }

    fn close(&self) {
        self.alterations.at_end.make();
        match self.alterations.stays_open {
            Some(_) => self.is_closed.store(true, Ordering::Relaxed),
            None => self.raw.close(),
        }
    }
}
