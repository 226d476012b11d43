//! What the client of a session does: the behaviour of the crate `zookeeper-client`.
//!
//! Its times are that crate's: a sign of life after 3/20 of the session timeout without a
//! request, a connection given up after 2/5 without an answer, the session given up after 7/5.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use zookeeper_recipes_core::ServerError;
use zookeeper_recipes_core::ensemble::{
    AuthId, ConnectionState, Event, SessionEnd, SessionId, TransactionError,
};

use super::faults::FaultKind;
use super::quorum::ServerState;
use super::request::{
    Answer, Arriving, Downward, Failure, Request, Upward, outcome_unknown, refused, session_over,
};
use super::server::Connection;
use super::session::SimulatedWatch;
use super::trace::TraceKind;
use super::watches::{ConnectionId, WatchKind};
use super::world::{Action, ClientId, ProcessId, World};

/// What came of a request, with the watch that it has set.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) answer: Answer,
    pub(super) watch: Option<SimulatedWatch>,
}

pub(super) type Responder = oneshot::Sender<Result<Settled, TransactionError>>;

/// Past this many bytes of watched paths the client sends its watches anew in several requests,
/// takes the second reply for a protocol error, and loses the connection by it.
const WATCHED_BYTES: usize = 128 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Exists,
    Children,
}

impl Kind {
    fn table(self) -> WatchKind {
        match self {
            Kind::Data | Kind::Exists => WatchKind::Data,
            Kind::Children => WatchKind::Children,
        }
    }
}

#[derive(Debug)]
struct Watcher {
    id: u64,
    kind: Kind,
    sender: oneshot::Sender<Event>,
}

#[derive(Debug)]
struct InFlight {
    id: u64,
    request: Request,
    responder: Option<Responder>,
}

/// The client of one session.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) process: ProcessId,
    pub(super) identities: Vec<AuthId>,
    pub(super) session: i64,
    /// What was negotiated last.
    pub(super) timeout: Duration,
    pub(super) state: ConnectionState,
    states: watch::Sender<ConnectionState>,
    opened: Option<oneshot::Sender<Result<(), ServerError>>>,
    pub(super) connection: Option<ConnectionId>,
    /// Requests that wait for a connection.
    pending: VecDeque<(Request, Responder)>,
    in_flight: VecDeque<InFlight>,
    next_request: u64,
    last_heard: Duration,
    last_sent: Duration,
    pinging: bool,
    timer_armed: bool,
    pub(super) timer_missed: bool,
    pub(super) reconnect_missed: bool,
    /// When it gives up the session, while it is not connected.
    deadline: Option<Duration>,
    pub(super) attempt: u64,
    attempts: u64,
    hosts: Vec<usize>,
    next_host: usize,
    preferred: Option<usize>,
    seen: i64,
    watchers: BTreeMap<String, Vec<Watcher>>,
    next_watcher: u64,
    /// How many requests under way will set a watch of a kind on a path.
    watching: BTreeMap<(String, WatchKind), usize>,
    /// Watches to take off once it is known that those requests have set none.
    unwatching: Vec<(String, Option<WatchKind>)>,
    closing: bool,
    /// Whether it has set more watches anew than it can.
    rewatches_too_much: bool,
}

impl Client {
    fn is_connected(&self) -> bool {
        self.state == ConnectionState::Connected
    }

    /// Whether the connection is made, and all watches stand on it again.
    fn is_ready(&self) -> bool {
        self.is_connected() && self.deadline.is_none()
    }

    fn has_ended(&self) -> Option<SessionEnd> {
        match self.state {
            ConnectionState::Ended(end) => Some(end),
            _ => None,
        }
    }

    fn will_watch(&self, path: &str) -> bool {
        [WatchKind::Data, WatchKind::Children]
            .iter()
            .any(|kind| self.watching.contains_key(&(path.to_owned(), *kind)))
    }
}

/// What a session's owner asks of its client.
impl World {
    pub(super) fn open_client(
        &mut self,
        process: ProcessId,
        identities: Vec<AuthId>,
    ) -> (
        ClientId,
        oneshot::Receiver<Result<(), ServerError>>,
        watch::Receiver<ConnectionState>,
    ) {
        let id = self.next_client;
        self.next_client += 1;
        let (states, state_receiver) = watch::channel(ConnectionState::Disconnected);
        let (opened, receiver) = oneshot::channel();
        let mut hosts: Vec<usize> = (0..self.servers.len()).collect();
        self.rng.shuffle(&mut hosts);
        let client = Client {
            process,
            identities,
            session: 0,
            timeout: self.options.session_timeout,
            state: ConnectionState::Disconnected,
            states,
            opened: Some(opened),
            connection: None,
            pending: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_request: 1,
            last_heard: self.now,
            last_sent: self.now,
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
            rewatches_too_much: false,
        };
        self.clients.insert(id, client);
        self.after(
            Duration::ZERO,
            Action::Reconnect {
                client: id,
                attempt: 0,
            },
        );
        (id, receiver, state_receiver)
    }

    /// Nobody waits for this client's session any more: it is left to its timeout.
    pub(super) fn abandon(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if let Some(connection) = client.connection.take() {
            self.close_at_client(connection);
        }
        self.clients.remove(&id);
    }

    /// The owner has let go of the session: it is closed once all that was asked has been sent.
    pub(super) fn close(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.has_ended().is_some() {
            self.clients.remove(&id);
            return;
        }
        client.closing = true;
        self.flush(id);
    }

    pub(super) fn ask(&mut self, id: ClientId, request: Request, responder: Responder) {
        let Some(client) = self.clients.get_mut(&id) else {
            self.send(responder, Err(session_over(SessionEnd::Closed)));
            return;
        };
        if let Some(end) = client.has_ended() {
            self.send(responder, Err(session_over(end)));
            return;
        }
        client.pending.push_back((request, responder));
        self.flush(id);
    }

    /// Sends what waits, where it can be sent.
    pub(super) fn flush(&mut self, id: ClientId) {
        loop {
            let Some(client) = self.clients.get_mut(&id) else {
                return;
            };
            if !client.is_ready() || self.processes[client.process].is_still() {
                return;
            }
            match client.pending.pop_front() {
                // Looked at only now: what was asked for before it may be about to set a watch.
                Some((Request::RemoveWatch { path, kind }, _)) => self.unwatch(id, path, kind),
                Some((request, responder)) => self.transmit(id, request, Some(responder)),
                None => break,
            }
        }
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let closes = client
            .in_flight
            .iter()
            .any(|it| matches!(it.request, Request::CloseSession));
        if client.closing && !closes {
            self.transmit(id, Request::CloseSession, None);
        }
    }

    fn transmit(&mut self, id: ClientId, request: Request, responder: Option<Responder>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(connection) = client.connection else {
            return;
        };
        let request_id = client.next_request;
        client.next_request += 1;
        client.last_sent = self.now;
        if let Some((path, kind)) = request.watch() {
            *client.watching.entry((path.to_owned(), kind)).or_default() += 1;
        }
        let (process, session) = (client.process, client.session);
        let in_flight = InFlight {
            id: request_id,
            request: request.clone(),
            responder,
        };
        client.in_flight.push_back(in_flight);
        let kind = request.kind();
        self.count_request(process);
        let name = self.processes[process].name.clone();
        *self.counters.requests.entry(kind).or_default() += 1;
        *self
            .counters
            .requests_of
            .entry(name.clone())
            .or_default()
            .entry(kind)
            .or_default() += 1;
        if kind != super::counters::RequestKind::Ping {
            self.trace_client(TraceKind::Request, id, || request.text());
        }

        let session_id = SessionId(session);
        let mut faults = self.faults.take(&name, session_id, kind, &request.paths());
        if kind.is_asked_for() {
            self.roll_for_request(&mut faults);
        }
        let mut arriving = Arriving {
            id: request_id,
            request,
            lose_reply: false,
            delay_reply: Duration::ZERO,
            expire: false,
            throttled: false,
            cut_off: None,
        };
        let mut late = Duration::ZERO;
        let mut lost = false;
        let mut sleep = None;
        for fault in faults {
            self.trace_client(TraceKind::Fault, id, || {
                format!("{:?}: {}", fault.kind, arriving.request.text())
            });
            match fault.kind {
                FaultKind::RequestLost => lost = true,
                FaultKind::ReplyLost => arriving.lose_reply = true,
                FaultKind::RequestLate(by) => late += by,
                FaultKind::ReplyLate(by) => arriving.delay_reply += by,
                FaultKind::SessionExpired => arriving.expire = true,
                FaultKind::Asleep(duration) => sleep = Some(duration),
                FaultKind::Throttled => arriving.throttled = true,
                FaultKind::CutOff(duration) => arriving.cut_off = Some(duration),
            }
            if let (Some(server), Some(client)) = (fault.reconnect_to, self.clients.get_mut(&id)) {
                client.preferred = Some(server % self.servers.len());
            }
        }
        if lost {
            if let Some(found) = self.connections.get_mut(&connection) {
                found.up_broken = true;
            }
            let cause = "the connection was reset";
            let delay = self.network_delay();
            let sent = self
                .connections
                .get(&connection)
                .map_or(self.now, |it| it.last_up);
            let at = sent.max(self.now + Duration::from_millis(1)) + delay;
            self.schedule(at, Action::Break { connection, cause });
        } else {
            self.send_up(connection, Upward::Request(arriving), late);
        }
        if let Some(duration) = sleep {
            self.fall_asleep(process, duration);
        }
    }

    fn send_up(&mut self, id: ConnectionId, message: Upward, extra: Duration) {
        let delay = self.network_delay() + extra;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.up_broken {
            return;
        }
        let Some(client) = self.clients.get(&connection.client) else {
            return;
        };
        let reachable = self.processes[client.process].mute_until;
        let at = (self.now + delay).max(connection.last_up).max(reachable);
        connection.last_up = at;
        self.schedule(
            at,
            Action::ToServer {
                connection: id,
                message,
            },
        );
    }
}

/// What reaches a client.
impl World {
    pub(super) fn reach_client(&mut self, id: ConnectionId, message: Downward) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.client_open {
            return;
        }
        let Some(client) = self.clients.get(&connection.client) else {
            return;
        };
        let asleep = self.processes[client.process].is_still();
        if asleep || !connection.held_down.is_empty() {
            connection.held_down.push_back(message);
            return;
        }
        self.hear(id, message);
    }

    /// A process that has woken takes what came for it meanwhile, one thing at a time.
    pub(super) fn release(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(client) = self.clients.get(&connection.client) else {
            return;
        };
        if self.processes[client.process].is_still() {
            return;
        }
        let Some(message) = connection.held_down.pop_front() else {
            return;
        };
        if !connection.held_down.is_empty() {
            self.after(Duration::ZERO, Action::Release { connection: id });
        }
        self.hear(id, message);
    }

    fn hear(&mut self, connection: ConnectionId, message: Downward) {
        let Some(found) = self.connections.get(&connection) else {
            return;
        };
        let id = found.client;
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.connection != Some(connection) {
            return;
        }
        match message {
            Downward::Close => {
                self.disconnect(id, "the server closed the connection");
                return;
            }
            Downward::Expired => {
                self.end(id, SessionEnd::Expired);
                return;
            }
            Downward::Connected { session, timeout } => self.connected(id, session, timeout),
            Downward::Event { path, event } => self.dispatch(id, &path, event),
            Downward::Reply {
                id: request,
                zxid,
                result,
            } => {
                self.settle(id, request, zxid, result);
            }
        }
        if let Some(client) = self.clients.get_mut(&id) {
            client.last_heard = self.now;
        }
    }

    fn connected(&mut self, id: ClientId, session: i64, timeout: Duration) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let earlier = std::mem::replace(&mut client.session, session);
        client.timeout = timeout;
        client.last_heard = self.now;
        if !client
            .in_flight
            .iter()
            .any(|it| matches!(it.request, Request::SetWatches { .. }))
        {
            client.deadline = None;
            client.attempts = 0;
        }
        let opened = client.opened.take();
        self.trace_client(TraceKind::Connection, id, || match earlier {
            0 => "connected".to_owned(),
            earlier if earlier == session => "connected".to_owned(),
            earlier => format!("connected, no longer in session {}", SessionId(earlier)),
        });
        self.change_state(id, ConnectionState::Connected);
        if let Some(opened) = opened {
            self.send(opened, Ok(()));
        }
        self.flush(id);
    }

    fn settle(&mut self, id: ClientId, request: u64, zxid: i64, result: Result<Answer, Failure>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.in_flight.front().is_none_or(|it| it.id != request) {
            return;
        }
        let Some(in_flight) = client.in_flight.pop_front() else {
            return;
        };
        match in_flight.request {
            Request::Ping => {
                client.pinging = false;
                if result == Err(Failure::SessionExpired) {
                    self.end(id, SessionEnd::Expired);
                }
                return;
            }
            Request::SetWatches { .. } => {
                if client.rewatches_too_much {
                    self.disconnect(id, "a reply to no pending request");
                    return;
                }
                client.deadline = None;
                client.attempts = 0;
                client.seen = client.seen.max(zxid);
                self.flush(id);
                return;
            }
            _ => {}
        }
        client.seen = client.seen.max(zxid);
        self.trace_client(TraceKind::Reply, id, || match &result {
            Ok(answer) => format!("{}: {}", in_flight.request.text(), answer.text()),
            Err(failure) => format!("{}: {failure:?}", in_flight.request.text()),
        });
        if result == Err(Failure::SessionExpired) {
            // The client ends the session before it fails what was in flight.
            if let Some(client) = self.clients.get_mut(&id) {
                client.in_flight.push_front(in_flight);
            }
            self.end(id, SessionEnd::Expired);
            return;
        }
        if matches!(in_flight.request, Request::CloseSession) {
            self.end(id, SessionEnd::Closed);
            return;
        }
        let watch = self.settle_watch(id, &in_flight.request, &result);
        let Some(responder) = in_flight.responder else {
            return;
        };
        let settled = match result {
            Ok(answer) => Ok(Settled { answer, watch }),
            Err(Failure::Refused { operation, refusal }) => Err(refused(operation, refusal)),
            Err(failure) => Err(outcome_unknown(&format!("{failure:?}"))),
        };
        self.send(responder, settled);
    }

    /// Notes the watch that a request has set, or that it has set none.
    fn settle_watch(
        &mut self,
        id: ClientId,
        request: &Request,
        result: &Result<Answer, Failure>,
    ) -> Option<SimulatedWatch> {
        let (path, table) = request.watch()?;
        let client = self.clients.get_mut(&id)?;
        let key = (path.to_owned(), table);
        let last = match client.watching.get_mut(&key) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            _ => {
                client.watching.remove(&key);
                true
            }
        };
        let kind = match result {
            Ok(Answer::Children(_)) => Kind::Children,
            Ok(Answer::Exists(None)) => Kind::Exists,
            Ok(_) => Kind::Data,
            Err(_) => {
                if last {
                    let idle = !client.will_watch(path);
                    let mut due = Vec::new();
                    client.unwatching.retain(|(on, kind)| {
                        let now = on == path && (*kind == Some(table) || (kind.is_none() && idle));
                        if now {
                            due.push((on.clone(), *kind));
                        }
                        !now
                    });
                    for (path, kind) in due {
                        self.transmit(id, Request::RemoveWatch { path, kind }, None);
                    }
                }
                return None;
            }
        };
        client
            .unwatching
            .retain(|(on, kind)| on != path || (kind.is_some() && *kind != Some(table)));
        let (sender, receiver) = oneshot::channel();
        let watcher = client.next_watcher;
        client.next_watcher += 1;
        client
            .watchers
            .entry(path.to_owned())
            .or_default()
            .push(Watcher {
                id: watcher,
                kind,
                sender,
            });
        Some(SimulatedWatch::new(
            self.handle.clone(),
            id,
            path.to_owned(),
            watcher,
            receiver,
        ))
    }

    fn dispatch(&mut self, id: ClientId, path: &str, event: Event) {
        self.trace_client(TraceKind::Event, id, || format!("{path} {event:?}"));
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(watchers) = client.watchers.remove(path) else {
            self.unwatch(id, path.to_owned(), None);
            return;
        };
        let (told, kept): (Vec<Watcher>, Vec<Watcher>) =
            watchers.into_iter().partition(|watcher| match event {
                Event::Created | Event::DataChanged => watcher.kind != Kind::Children,
                Event::ChildrenChanged => watcher.kind == Kind::Children,
                _ => true,
            });
        if !kept.is_empty() {
            client.watchers.insert(path.to_owned(), kept);
        }
        for watcher in told {
            self.send(watcher.sender, event);
        }
    }

    /// A watch was dropped before it had seen anything.
    pub(super) fn drop_watcher(&mut self, id: ClientId, path: &str, watcher: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(watchers) = client.watchers.get_mut(path) else {
            return;
        };
        let Some(at) = watchers.iter().position(|it| it.id == watcher) else {
            return;
        };
        let table = watchers.remove(at).kind.table();
        let kind = if watchers.is_empty() {
            client.watchers.remove(path);
            if client.will_watch(path) {
                Some(table)
            } else {
                None
            }
        } else if watchers.iter().any(|it| it.kind.table() == table) {
            return;
        } else {
            Some(table)
        };
        self.unwatch(id, path.to_owned(), kind);
    }

    fn unwatch(&mut self, id: ClientId, path: String, kind: Option<WatchKind>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if !client.is_ready() {
            // What is not known here is not set anew; but it may be on its way just now.
            if client.connection.is_some() {
                let (responder, _) = oneshot::channel();
                client
                    .pending
                    .push_back((Request::RemoveWatch { path, kind }, responder));
            }
            return;
        }
        let deferred = match kind {
            Some(kind) => client.watching.contains_key(&(path.clone(), kind)),
            None => client.will_watch(&path),
        };
        if deferred {
            client.unwatching.push((path, kind));
            return;
        }
        if self.processes[client.process].is_still() {
            let (responder, _) = oneshot::channel();
            client
                .pending
                .push_back((Request::RemoveWatch { path, kind }, responder));
            return;
        }
        self.transmit(id, Request::RemoveWatch { path, kind }, None);
    }
}

/// How a client loses its connection and finds another, or its end.
impl World {
    fn change_state(&mut self, id: ClientId, state: ConnectionState) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.state == state || client.has_ended().is_some() {
            return;
        }
        client.state = state;
        let states = client.states.clone();
        self.effect(move || {
            states.send_replace(state);
        });
    }

    /// The client's end of a connection is closed.
    pub(super) fn close_at_client(&mut self, id: ConnectionId) {
        self.send_up(id, Upward::Close, Duration::ZERO);
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.client_open = false;
        connection.held_down.clear();
        self.forget_closed(id);
    }

    /// Both ends learn that a connection is broken.
    pub(super) fn break_connection(&mut self, id: ConnectionId, cause: &'static str) {
        self.close_at_server(id, false);
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.client_open {
            return;
        }
        let client = connection.client;
        let Some(found) = self.clients.get(&client) else {
            return;
        };
        if self.processes[found.process].is_still() {
            connection.held_down.push_back(Downward::Close);
            return;
        }
        if found.connection == Some(id) {
            self.disconnect(client, cause);
        }
    }

    pub(super) fn disconnect(&mut self, id: ClientId, cause: &'static str) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(connection) = client.connection.take() else {
            return;
        };
        let was_ready = client.is_ready();
        if was_ready {
            client.deadline = Some(client.last_heard + client.timeout * 7 / 5);
            client.attempts = 0;
            self.rng.shuffle(&mut client.hosts);
            client.next_host = 0;
        }
        client.pinging = false;
        client.watching.clear();
        client.unwatching.clear();
        let in_flight = std::mem::take(&mut client.in_flight);
        let (process, timeout) = (client.process, client.timeout);
        self.trace_client(TraceKind::Connection, id, || {
            format!("disconnected: {cause}")
        });
        self.close_at_client(connection);
        if self.now < self.processes[process].mute_until && self.rng.bool() {
            // What was sent into the void is not sent again once it is mended. The server, which
            // hears nothing, gives the connection up by itself.
            if let Some(found) = self.connections.get_mut(&connection) {
                found.deaf = true;
            }
            let patience = timeout;
            self.after(patience, Action::Break { connection, cause });
        }
        self.change_state(id, ConnectionState::Disconnected);
        self.fail_in_flight(in_flight, || outcome_unknown(cause));
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.attempt += 1;
        let attempt = client.attempt;
        let action = if was_ready {
            Action::Reconnect {
                client: id,
                attempt,
            }
        } else {
            Action::AttemptFailed {
                client: id,
                attempt,
            }
        };
        self.after(Duration::ZERO, action);
    }

    fn fail_in_flight(
        &mut self,
        in_flight: VecDeque<InFlight>,
        error: impl Fn() -> TransactionError,
    ) {
        for each in in_flight {
            if let Some(responder) = each.responder {
                let error = error();
                self.send(responder, Err(error));
            }
        }
    }

    /// The session is over, for its client at least.
    fn end(&mut self, id: ClientId, end: SessionEnd) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.has_ended().is_some() {
            return;
        }
        let connection = client.connection.take();
        let watchers = std::mem::take(&mut client.watchers);
        let in_flight = std::mem::take(&mut client.in_flight);
        let pending = std::mem::take(&mut client.pending);
        let opened = client.opened.take();
        let closing = client.closing;
        self.trace_client(TraceKind::Connection, id, || {
            format!("the session is over: {end}")
        });
        if let Some(connection) = connection {
            self.close_at_client(connection);
        }
        self.change_state(id, ConnectionState::Ended(end));
        for watcher in watchers.into_values().flatten() {
            self.send(watcher.sender, Event::SessionEnded(end));
        }
        self.fail_in_flight(in_flight, || session_over(end));
        for (_, responder) in pending {
            self.send(responder, Err(session_over(end)));
        }
        if let Some(opened) = opened {
            self.send(opened, Err(ServerError::SessionOver(end)));
        }
        if closing {
            self.clients.remove(&id);
        }
    }

    pub(super) fn reconnect(&mut self, id: ClientId, attempt: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.attempt != attempt || client.has_ended().is_some() {
            return;
        }
        let process = &self.processes[client.process];
        if process.is_still() {
            client.reconnect_missed = true;
            return;
        }
        let server = match client.preferred.take() {
            Some(server) => server,
            None => {
                let server = client.hosts[client.next_host];
                client.next_host = (client.next_host + 1) % client.hosts.len();
                server
            }
        };
        if self.now < process.mute_until.max(process.deaf_until) {
            // Nobody answers the knock at all.
            let patience = client.timeout * 2 / 5;
            self.after(
                patience,
                Action::AttemptFailed {
                    client: id,
                    attempt,
                },
            );
            return;
        }
        if self.servers[server].state == ServerState::Down {
            let delay = self.network_delay();
            self.after(
                delay,
                Action::AttemptFailed {
                    client: id,
                    attempt,
                },
            );
            return;
        }
        let connection = self.next_connection;
        self.next_connection += 1;
        self.connections
            .insert(connection, Connection::new(id, server));
        client.connection = Some(connection);
        client.last_heard = self.now;
        client.last_sent = self.now;
        let seen = client.seen;
        let session = (client.session != 0).then_some(client.session);
        self.trace_client(TraceKind::Connection, id, || {
            format!("connecting to server {server}")
        });
        self.send_up(
            connection,
            Upward::Connect { session, seen },
            Duration::ZERO,
        );
        self.watch_anew(id);
        self.arm_timer(id);
    }

    /// Sends the watches that the client knows of on a new connection.
    fn watch_anew(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let (mut data, mut exists, mut children) = (Vec::new(), Vec::new(), Vec::new());
        let mut bytes = 0;
        for (path, watchers) in &client.watchers {
            for (kind, paths) in [
                (Kind::Data, &mut data),
                (Kind::Exists, &mut exists),
                (Kind::Children, &mut children),
            ] {
                if watchers.iter().any(|watcher| watcher.kind == kind) {
                    paths.push(path.clone());
                    bytes += path.len();
                }
            }
        }
        if bytes == 0 {
            return;
        }
        let zxid = client.seen;
        client.rewatches_too_much = bytes > WATCHED_BYTES;
        self.transmit(
            id,
            Request::SetWatches {
                zxid,
                data,
                exists,
                children,
            },
            None,
        );
    }

    pub(super) fn attempt_failed(&mut self, id: ClientId, attempt: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.attempt != attempt || client.has_ended().is_some() {
            return;
        }
        if self.processes[client.process].is_still() {
            client.reconnect_missed = true;
            return;
        }
        if client.deadline.is_some_and(|deadline| self.now >= deadline) {
            self.end(id, SessionEnd::Expired);
            return;
        }
        client.attempts += 1;
        client.attempt += 1;
        let next = client.attempt;
        let hosts = client.hosts.len() as u64;
        let (cycle, offset) = (client.attempts / hosts, client.attempts % hosts);
        let deadline = client.deadline;
        let pause = if cycle == 0 {
            Duration::ZERO
        } else if offset == 0 {
            let base = Duration::from_millis((100 * hosts).min(1000));
            base.saturating_mul(2_u32.saturating_pow(cycle as u32 - 1))
                + Duration::from_millis(self.rng.u64(0..100))
        } else {
            Duration::from_millis(50 * offset + self.rng.u64(0..50))
        };
        let at = self.now + pause;
        let at = deadline.map_or(at, |deadline| at.min(deadline.max(self.now)));
        self.schedule(
            at,
            Action::Reconnect {
                client: id,
                attempt: next,
            },
        );
    }

    fn arm_timer(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let tick = client.timeout / 20;
        if client.timer_armed || client.connection.is_none() {
            return;
        }
        client.timer_armed = true;
        let silence = client.last_heard + tick * 8;
        let idle = client.last_sent + (tick * 3).min(Duration::from_secs(10));
        let at = silence.min(idle.max(self.now + tick));
        // The client looks at its clock once a tick only.
        let late = Duration::from_millis(self.rng.u64(0..=tick.as_millis() as u64 / 2));
        self.schedule(
            at.max(self.now + tick / 2) + late,
            Action::ClientTimer { client: id },
        );
    }

    pub(super) fn client_timer(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let tick = client.timeout / 20;
        if self.processes[client.process].is_still() {
            client.timer_missed = true;
            return;
        }
        client.timer_armed = false;
        if client.connection.is_none() {
            return;
        }
        if self.now >= client.last_heard + tick * 8 {
            self.disconnect(id, "no answer for too long");
            return;
        }
        let idle = (tick * 3).min(Duration::from_secs(10));
        if client.is_connected() && !client.pinging && self.now >= client.last_sent + idle {
            client.pinging = true;
            self.transmit(id, Request::Ping, None);
        }
        self.arm_timer(id);
    }
}
