//! What the client of one session knows.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use zookeeper_recipes_core::ServerError;
use zookeeper_recipes_core::ensemble::{
    AuthId, ConnectionState, Event, SessionEnd, TransactionError,
};

use super::watch::SimulatedWatch;
use crate::process::machine::ProcessId;
use crate::wire::answer::Answer;
use crate::wire::connection::ConnectionId;
use crate::wire::message::Downward;
use crate::wire::request::Request;
use crate::wire::watch_kind::WatchKind;

/// What came of a request, with the watch that it has set.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) answer: Answer,
    pub(crate) watch: Option<SimulatedWatch>,
}

pub(crate) type Responder = oneshot::Sender<Result<Settled, TransactionError>>;

/// Whether a session has been opened.
pub(crate) type Opened = Result<(), ServerError>;

/// What a watch of the client was set by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Exists,
    Children,
}

impl Kind {
    pub(super) fn table(self) -> WatchKind {
        match self {
            Kind::Data | Kind::Exists => WatchKind::Data,
            Kind::Children => WatchKind::Children,
        }
    }
}

#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) id: u64,
    pub(super) kind: Kind,
    pub(super) sender: oneshot::Sender<Event>,
}

#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: u64,
    pub(super) request: Request,
    pub(super) responder: Option<Responder>,
}

/// The client of one session.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) process: ProcessId,
    pub(super) identities: Vec<AuthId>,
    pub(crate) session: i64,
    /// The timeout that was negotiated last.
    pub(crate) timeout: Duration,
    pub(super) state: ConnectionState,
    pub(super) states: watch::Sender<ConnectionState>,
    pub(super) opened: Option<oneshot::Sender<Opened>>,
    pub(crate) connection: Option<ConnectionId>,
    /// What has come on the connection while the process stood still.
    pub(super) held_down: VecDeque<Downward>,
    /// Requests that wait for a connection.
    pub(super) pending: VecDeque<(Request, Responder)>,
    pub(super) in_flight: VecDeque<InFlight>,
    pub(super) next_request: u64,
    pub(super) last_heard: Duration,
    pub(super) last_sent: Duration,
    pub(super) pinging: bool,
    pub(super) timer_armed: bool,
    pub(super) timer_missed: bool,
    pub(super) reconnect_missed: bool,
    /// When it gives up the session, while it is not connected.
    pub(super) deadline: Option<Duration>,
    pub(super) attempt: u64,
    pub(super) attempts: u64,
    pub(super) hosts: Vec<usize>,
    pub(super) next_host: usize,
    pub(super) preferred: Option<usize>,
    pub(super) seen: i64,
    pub(super) watchers: BTreeMap<String, Vec<Watcher>>,
    pub(super) next_watcher: u64,
    /// How many requests under way will set a watch of a kind on a path.
    pub(super) watching: BTreeMap<(String, WatchKind), usize>,
    /// Watches to take off once it is known that those requests have set none.
    pub(super) unwatching: Vec<(String, Option<WatchKind>)>,
    pub(super) closing: bool,
}

impl Client {
    pub(super) fn new(
        process: ProcessId,
        identities: Vec<AuthId>,
        timeout: Duration,
        hosts: Vec<usize>,
        now: Duration,
    ) -> Client {
        Client {
            process,
            identities,
            session: 0,
            timeout,
            state: ConnectionState::Disconnected,
            states: watch::Sender::new(ConnectionState::Disconnected),
            opened: None,
            connection: None,
            held_down: VecDeque::new(),
            pending: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_request: 1,
            last_heard: now,
            last_sent: now,
            pinging: false,
            timer_armed: false,
            timer_missed: false,
            reconnect_missed: false,
            deadline: None,
            attempt: 0,
            attempts: 0,
            hosts,
            next_host: 0,
            preferred: None,
            seen: 0,
            watchers: BTreeMap::new(),
            next_watcher: 1,
            watching: BTreeMap::new(),
            unwatching: Vec::new(),
            closing: false,
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state == ConnectionState::Connected
    }

    /// Whether the connection is made, and all watches stand on it again.
    pub(super) fn is_ready(&self) -> bool {
        self.is_connected() && self.deadline.is_none()
    }

    pub(super) fn has_ended(&self) -> Option<SessionEnd> {
        match self.state {
            ConnectionState::Ended(end) => Some(end),
            _ => None,
        }
    }

    pub(super) fn will_watch(&self, path: &str) -> bool {
        [WatchKind::Data, WatchKind::Children]
            .iter()
            .any(|kind| self.watching.contains_key(&(path.to_owned(), *kind)))
    }

    /// The next server to try.
    pub(super) fn next_server(&mut self) -> usize {
        self.preferred.take().unwrap_or_else(|| {
            let server = self.hosts[self.next_host];
            self.next_host = (self.next_host + 1) % self.hosts.len();
            server
        })
    }
}
