//! A session with a scripted server for unit tests, by tokio's clock.

use std::fmt;
use std::future::{pending, ready};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::contender::Identity;
use crate::events::RecipeInfo;
use crate::invalid_input::InvalidInput;
use crate::live::lease::{LeaseConfig, SessionOrigin};
use crate::live::live_session::LiveSession;
use crate::path::NodePath;
use crate::server::ensemble::{
    Acl, AuthId, ConnectionState, Connector, CreateMode, Created, Ensemble, Exchange, Node,
    Operation, Outcome, Reply, ServerSession, SessionId, Stat, TransactionError, Watch,
};
use crate::server::error::{Refusal, ServerError};
use crate::server::options::ConnectOptions;
use crate::sync::lock;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_secs(2);

/// How long the lease runs after the sending of a confirmed contact.
pub(crate) const LEASE: Duration = Duration::from_millis(8_750);

/// The source of the events of a lock.
pub(crate) fn recipe_info() -> Arc<RecipeInfo> {
    Arc::new(RecipeInfo {
        recipe: "lock",
        name: "".into(),
        path: NodePath::new("/locks").expect("a good path"),
        owner: "".into(),
        leads: false,
    })
}

/// A scripted ensemble and its session, which has the id 1.
pub(crate) struct Scripted {
    began: Instant,
    /// The time between a request and its answer.
    answers_after: Duration,
    /// The number of the connection.
    connection: AtomicU64,
    /// When each sync was sent.
    syncs: Mutex<Vec<Duration>>,
    proofs: Mutex<Vec<Duration>>,
    is_disconnected: AtomicBool,
    /// True if the client is on another connection after each read that sets a watch.
    reconnects_at_reads: AtomicBool,
    /// How long the machine was asleep.
    asleep: Mutex<Duration>,
    /// The pauses before the next two readings of the clock.
    pause: Mutex<[Duration; 2]>,
    /// The operation of a transaction that is refused, and the reason.
    refused: Mutex<Option<(usize, Refusal)>>,
    /// The paths of the deletions that were sent.
    deletions: Mutex<Vec<String>>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Scripted")
    }
}

impl Scripted {
    /// Opens a session now. Its server answers each request after `answers_after`.
    pub(crate) fn open(answers_after: Duration) -> (Arc<LiveSession>, Arc<Scripted>) {
        let scripted = Arc::new(Scripted {
            began: Instant::now(),
            answers_after,
            connection: AtomicU64::new(0),
            syncs: Mutex::default(),
            proofs: Mutex::default(),
            is_disconnected: AtomicBool::new(false),
            reconnects_at_reads: AtomicBool::new(false),
            asleep: Mutex::default(),
            pause: Mutex::default(),
            refused: Mutex::default(),
            deletions: Mutex::default(),
        });
        let ensemble: Arc<dyn Ensemble> = scripted.clone();
        let live = LiveSession::new(
            ensemble,
            scripted.clone(),
            LeaseConfig::with_tick(TIMEOUT, TICK),
            SessionOrigin::Opened(Duration::ZERO),
            Handle::current(),
        );
        (Arc::new(live), scripted)
    }

    /// Puts the client on another connection.
    pub(crate) fn reconnect(&self) {
        self.connection.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers each read that sets a watch, and puts the client on another connection then.
    pub(crate) fn reconnect_at_reads(&self) {
        self.reconnects_at_reads.store(true, Ordering::Relaxed);
    }

    /// Breaks the connection.
    pub(crate) fn disconnect(&self) {
        self.is_disconnected.store(true, Ordering::Relaxed);
    }

    /// Puts the machine to sleep, which the clock counts and a timer does not.
    pub(crate) fn sleep(&self, duration: Duration) {
        *lock(&self.asleep) += duration;
    }

    /// True if a `sync` was sent at this time.
    pub(crate) fn has_sent(&self, at: Duration) -> bool {
        lock(&self.syncs).contains(&at)
    }

    /// The paths of the deletions that were sent.
    pub(crate) fn deletions(&self) -> Vec<String> {
        lock(&self.deletions).clone()
    }

    /// Pauses the process between its next two readings of the clock.
    pub(crate) fn pause_between_looks(&self, pause: Duration) {
        *lock(&self.pause) = [Duration::ZERO, pause];
    }

    /// When each proof was sent.
    pub(crate) fn proofs(&self) -> Vec<Duration> {
        lock(&self.proofs).clone()
    }

    /// Refuses transactions at this operation.
    pub(crate) fn refuse(&self, operation: usize, refusal: Refusal) {
        *lock(&self.refused) = Some((operation, refusal));
    }

    /// A request that was sent at `sent` is answered now, over the current connection.
    pub(crate) fn exchange(&self, sent: Duration) -> Exchange {
        Exchange {
            sent,
            answered: self.began.elapsed(),
            connection: self.connection(),
        }
    }

    /// The metadata of a znode that was just created.
    fn stat(&self) -> Stat {
        Stat {
            czxid: 1,
            mzxid: 1,
            pzxid: 1,
            ephemeral_owner: 1,
            ..Stat::default()
        }
    }

    fn answer<T: Send + 'static>(&self, answer: T) -> Reply<'static, T> {
        // The time counts from the request, not from the first poll of the reply.
        let answered = sleep(self.answers_after);
        async move {
            answered.await;
            Ok(answer)
        }
        .boxed()
    }
}

impl Ensemble for Scripted {
    fn connector(self: Arc<Self>, _: &ConnectOptions) -> Result<Arc<dyn Connector>, InvalidInput> {
        unreachable!("its one session is open")
    }

    fn now(&self) -> Duration {
        let mut pause = lock(&self.pause);
        let [before, next] = *pause;
        *pause = [before + next, Duration::ZERO];
        self.began.elapsed() + *lock(&self.asleep) + before
    }

    /// The share of each time that is drawn with it is the whole time.
    fn identity(&self) -> Identity {
        Identity::from_random_bits(u128::MAX)
    }

    fn address(&self) -> String {
        "a script".to_owned()
    }
}

impl ServerSession for Scripted {
    fn id(&self) -> SessionId {
        SessionId(1)
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    fn state(&self) -> ConnectionState {
        match self.is_disconnected.load(Ordering::Relaxed) {
            true => ConnectionState::Disconnected,
            false => ConnectionState::Connected,
        }
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        stream::pending().boxed()
    }

    fn connection(&self) -> Option<u64> {
        let is_connected = !self.is_disconnected.load(Ordering::Relaxed);
        is_connected.then(|| self.connection.load(Ordering::Relaxed))
    }

    fn opened_over(&self) -> Option<u64> {
        self.connection()
    }

    fn limit_requests(&self, _: usize) {}

    fn orders_events(&self) -> bool {
        true
    }

    fn own_identity(&self) -> Option<AuthId> {
        None
    }

    fn close(&self) -> Option<Arc<dyn ServerSession>> {
        None
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        _: &[u8],
        _: CreateMode,
        _: &[Acl],
    ) -> Reply<'a, Created> {
        let (path, stat) = (path.to_owned(), self.stat());
        self.answer(Created { path, stat })
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        lock(&self.deletions).push(path.to_owned());
        self.answer(())
    }

    fn list<'a>(&'a self, _: &'a str) -> Reply<'a, Vec<String>> {
        self.answer(Vec::new())
    }

    fn list_and_watch<'a>(&'a self, _: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        self.answer((Vec::new(), pending().boxed()))
    }

    fn get<'a>(&'a self, _: &'a str) -> Reply<'a, Node> {
        pending().boxed()
    }

    fn get_and_watch<'a>(&'a self, _: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        async {
            if !self.reconnects_at_reads.load(Ordering::Relaxed) {
                return pending().await;
            }
            self.reconnect();
            Ok((Vec::new(), self.stat(), pending().boxed()))
        }
        .boxed()
    }

    fn exists_and_watch<'a>(&'a self, _: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        pending().boxed()
    }

    fn transact<'a>(
        &'a self,
        _: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        let outcomes = match lock(&self.refused).clone() {
            Some((operation, refusal)) => Err(TransactionError {
                operation: Some(operation),
                error: ServerError::Refused(refusal),
            }),
            None => Ok(Vec::new()),
        };
        ready(outcomes).boxed()
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        self.answer(paths.iter().map(|_| None).collect())
    }

    fn sync<'a>(&'a self, _: &'a str) -> Reply<'a, Exchange> {
        lock(&self.syncs).push(self.began.elapsed());
        self.exchanged()
    }

    fn commit_noop(&self) -> Reply<'_, Exchange> {
        lock(&self.proofs).push(self.began.elapsed());
        self.exchanged()
    }
}

impl Scripted {
    fn exchanged(&self) -> Reply<'_, Exchange> {
        let (asked, answer) = (self.exchange(self.began.elapsed()), self.answer(()));
        async move {
            answer.await?;
            let answered = self.began.elapsed();
            Ok(Exchange { answered, ..asked })
        }
        .boxed()
    }
}
