//! A session with a scripted server for unit tests, by tokio's clock.

use std::future::pending;
use std::net::SocketAddr;
pub(crate) use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
pub(crate) use std::time::Duration;

pub(crate) use futures_util::future::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::watch;
pub(crate) use tokio::time::{Instant, sleep};
pub(crate) use tracing::{Level, Span};
use zookeeper_recipes_connection::{Connecting, Host, Network};
pub(crate) use zookeeper_recipes_protocol::ErrorCode;
use zookeeper_recipes_protocol::{Reply, ReplyBody};
pub(crate) use zookeeper_recipes_suite::log::Log;

use crate::contender::Identity;
use crate::events::RecipeInfo;
use crate::events::hold::HoldRecord;
use crate::hold::grant::Terms;
use crate::hold::own_znode::ContenderName;
use crate::hold_state::FencingToken;
use crate::invalid_input::InvalidInput;
use crate::live::fake::{FakeEnsemble, FakeSession};
use crate::live::lease::{LeaseConfig, LeaseEpoch, SessionOrigin};
use crate::live::live_session::LiveSession;
use crate::path::NodePath;
use crate::server::ensemble::{
    Answer, ConnectionState, EnsembleFacts, Environment, Exchange, Operation, Outcome, RawReply,
    RequestBody, ServerSession, SessionId, Stat, boxed_reply,
};
use crate::server::options::ConnectOptions;
use crate::sync::lock;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_secs(2);

/// How long the lease runs after the sending of a confirmed contact.
pub(crate) const LEASE: Duration = Duration::from_millis(8_750);

/// The name of a contender's znode at this path.
pub(crate) fn name(path: &str) -> ContenderName {
    let directory = NodePath::new("/locks").expect("a good path");
    ContenderName::at(&directory, Identity::from_random_bits(0), path.to_owned())
}

/// The terms of a grant after this number of lapses.
pub(crate) fn terms(epoch: u64, deadline: Option<Duration>) -> Terms {
    Terms {
        token: FencingToken::from(1),
        epoch: LeaseEpoch(epoch),
        deadline,
        rule: None,
    }
}

/// The record of a hold on these terms.
pub(crate) fn record(terms: &Terms) -> HoldRecord {
    HoldRecord::begin(recipe_info(), &Span::none(), terms.token, Duration::ZERO)
}

/// The source of the events of a lock.
pub(crate) fn recipe_info() -> Arc<RecipeInfo> {
    let path = NodePath::new("/locks").expect("a good path");
    Arc::new(RecipeInfo::new("lock", "".into(), path, "".into()))
}

/// The server of a session with the id 1.
#[derive(Debug)]
pub(crate) struct Scripted {
    clock: Arc<Clock>,
    /// The time between a request and its answer.
    answers_after: Duration,
    state: watch::Sender<ConnectionState>,
    /// The requests, and when they were sent.
    sent: Mutex<Vec<(Duration, RequestBody)>>,
    /// True if the client is on another connection after each read that sets a watch.
    reconnects_at_reads: AtomicBool,
    /// The operation of a transaction that is refused, and the reason.
    refused: Mutex<Option<(usize, ErrorCode)>>,
}

/// The clock of a scripted ensemble.
#[derive(Debug)]
struct Clock {
    began: Instant,
    /// How long the machine was asleep.
    asleep: Mutex<Duration>,
    /// The pauses before the next two readings of the clock.
    pause: Mutex<[Duration; 2]>,
}

pub(crate) const DISCONNECTED: ConnectionState = ConnectionState::Disconnected { timeout: TIMEOUT };

/// The state of the session over the connection of this number.
pub(crate) fn connected(connection: u64) -> ConnectionState {
    ConnectionState::Connected {
        session_id: 1,
        timeout: TIMEOUT,
        connection,
    }
}

impl Scripted {
    /// Opens a session now. Its server answers each request after `answers_after`.
    pub(crate) fn open(answers_after: Duration) -> (Arc<LiveSession>, Arc<Scripted>) {
        let clock = Arc::new(Clock {
            began: Instant::now(),
            asleep: Mutex::default(),
            pause: Mutex::default(),
        });
        let ensemble = FakeEnsemble {
            facts: EnsembleFacts {
                environment: clock.clone(),
                ..EnsembleFacts::new("a script")
            },
            connector: Box::new(|_| unreachable!("its one session is open")),
        };
        let scripted = Arc::new(Scripted {
            clock,
            answers_after,
            state: watch::Sender::new(connected(0)),
            sent: Mutex::default(),
            reconnects_at_reads: AtomicBool::new(false),
            refused: Mutex::default(),
        });
        let config = LeaseConfig::with_tick(TIMEOUT, TICK);
        let (origin, runtime) = (SessionOrigin::Opened(Duration::ZERO), Handle::current());
        let server = scripted.server();
        let live = LiveSession::new(Arc::new(ensemble), server, config, origin, runtime);
        (Arc::new(live), scripted)
    }

    /// Its session.
    pub(crate) fn server(self: &Arc<Self>) -> Arc<ServerSession> {
        let sends = self.clone();
        Arc::new(ServerSession {
            raw: Arc::new(FakeSession {
                send: Box::new(move |request| sends.send(request)),
                watch_tree: None,
                orders_events: true,
                leave_server: Box::new(|| ()),
                close: Box::new(|| ()),
            }),
            connection_states: self.state.subscribe(),
            id: SessionId(1),
            timeout: TIMEOUT,
            opened_over: Some(0),
            own_identity: None,
            scope: ConnectOptions::new().scope("/"),
            left_open: None,
        })
    }

    /// Puts the client on another connection.
    pub(crate) fn reconnect(&self) {
        let before = self.connection().unwrap_or_default();
        self.state.send_replace(connected(before + 1));
    }

    fn connection(&self) -> Option<u64> {
        match *self.state.borrow() {
            ConnectionState::Connected { connection, .. } => Some(connection),
            _ => None,
        }
    }

    /// Answers each read that sets a watch, and puts the client on another connection then.
    pub(crate) fn reconnect_at_reads(&self) {
        self.reconnects_at_reads.store(true, Ordering::Relaxed);
    }

    /// Breaks the connection.
    pub(crate) fn disconnect(&self) {
        self.state.send_replace(DISCONNECTED);
    }

    /// Puts the machine to sleep, which the clock counts and a timer does not.
    pub(crate) fn sleep(&self, duration: Duration) {
        *lock(&self.clock.asleep) += duration;
    }

    /// Pauses the process between its next two readings of the clock.
    pub(crate) fn pause_between_looks(&self, pause: Duration) {
        *lock(&self.clock.pause) = [Duration::ZERO, pause];
    }

    /// What `of` finds in the requests and the times of their sending.
    fn sent<T>(&self, of: impl Fn(Duration, &RequestBody) -> Option<T>) -> Vec<T> {
        let sent = lock(&self.sent);
        sent.iter().filter_map(|(at, it)| of(*at, it)).collect()
    }

    /// True if a `sync` was sent at this time.
    pub(crate) fn has_sent(&self, at: Duration) -> bool {
        let syncs = self.sent(|at, it| matches!(it, RequestBody::Sync(_)).then_some(at));
        syncs.contains(&at)
    }

    /// When each proof was sent.
    pub(crate) fn proofs(&self) -> Vec<Duration> {
        self.sent(|at, it| matches!(it, RequestBody::Multi(_)).then_some(at))
    }

    /// The paths of the deletions that were sent.
    pub(crate) fn deletions(&self) -> Vec<String> {
        self.sent(|_, request| match request {
            RequestBody::Delete(delete) => Some(delete.path.clone()),
            RequestBody::Multi(operations) => operations.iter().find_map(|it| match it {
                Operation::Delete(delete) => Some(delete.path.clone()),
                _ => None,
            }),
            _ => None,
        })
    }

    /// Refuses transactions at this operation.
    pub(crate) fn refuse(&self, operation: usize, code: ErrorCode) {
        *lock(&self.refused) = Some((operation, code));
    }

    /// A request that was sent at `sent` is answered now, over the current connection.
    pub(crate) fn exchange(&self, sent: Duration) -> Exchange {
        Exchange {
            sent,
            answered: self.clock.began.elapsed(),
            connection: self.connection(),
        }
    }

    /// The results of a transaction of so many operations.
    fn results(&self, operations: usize) -> Vec<Outcome> {
        match *lock(&self.refused) {
            Some((refused, code)) => Outcome::failed(operations, refused, code),
            None => vec![Outcome::Check; operations],
        }
    }

    /// Answers a request.
    fn send(&self, request: RequestBody) -> RawReply {
        let (began, sent) = (self.clock.began, self.clock.began.elapsed());
        let connection = self.connection();
        lock(&self.sent).push((sent, request.clone()));
        let stat = Stat {
            czxid: 1,
            mzxid: 1,
            pzxid: 1,
            ephemeral_owner: 1,
            ..Stat::default()
        };
        let body = match request {
            RequestBody::Delete(_) => ReplyBody::Empty,
            RequestBody::GetChildren(_) => {
                let children = Vec::new();
                ReplyBody::Children { children }
            }
            RequestBody::GetData(read)
                if read.watch && self.reconnects_at_reads.load(Ordering::Relaxed) =>
            {
                self.reconnect();
                ReplyBody::Data { data: None, stat }
            }
            RequestBody::Multi(operations) => ReplyBody::Multi(self.results(operations.len())),
            RequestBody::Sync(sync) => ReplyBody::Sync { path: sync.path },
            _ => return boxed_reply(pending()),
        };
        // The time counts from the request, not from the first poll of the reply.
        let answered = sleep(self.answers_after);
        boxed_reply(async move {
            answered.await;
            let answer = Answer {
                reply: Reply::new(1, 1, body),
                exchange: Exchange {
                    sent,
                    answered: began.elapsed(),
                    connection,
                },
            };
            Ok((answer, Some(pending().boxed())))
        })
    }
}

impl Network for Clock {
    fn connect(&self, _: &Host, _: SocketAddr, _: Duration) -> Connecting {
        unreachable!("it opens no connection")
    }

    fn now(&self) -> Duration {
        let mut pause = lock(&self.pause);
        let [before, next] = *pause;
        *pause = [before + next, Duration::ZERO];
        self.began.elapsed() + *lock(&self.asleep) + before
    }
}

impl Environment for Clock {
    fn network(&self, _: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput> {
        unreachable!("it opens no connection")
    }

    /// The share of each time that is drawn with it is the whole time.
    fn random(&self) -> u128 {
        u128::MAX
    }
}
