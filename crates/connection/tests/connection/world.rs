//! The machine and its peer, joined by a pair of byte pipes, under virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use zookeeper_recipes_connection::{
    Answer, Config, ConnectionState, DisconnectReason, Host, Machine, Output, RequestError,
    SessionEnd, TreeEvent, UnsupportedRequests, WatchEvent, WatchId, WatchedRead,
};
use zookeeper_recipes_protocol::{
    CreateMode, CreateRequest, ErrorCode, EventType, OpCode, PathRequest, ReplyBody, RequestBody,
};

use crate::peer::{Ensemble, Served};

/// The session timeout that the machine asks for.
pub(crate) const T: Duration = Duration::from_secs(10);

/// How a host answers a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A member of the ensemble.
    Member,
    /// A member that sends what it has to say this long after the connection was opened.
    Slow(Duration),
    /// Refuses the connection.
    Refused,
    /// Never answers the connection.
    Lost,
    /// Accepts, reads, and never sends a byte.
    Mute,
    /// Accepts, and closes the connection.
    Closes,
}

/// Where a connection is cut: after this many bytes of the world's life.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    ToServer(usize),
    ToClient(usize),
}

#[derive(Debug)]
struct Pipe {
    served: Served,
    way: Way,
    /// When the first bytes for the client arrive.
    answers_at: Duration,
    /// True if nothing passes any more, and nobody says so.
    dead: bool,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) machine: Machine<usize, usize>,
    pub(crate) ensemble: Ensemble,
    pub(crate) ways: Vec<Way>,
    pipe: Option<Pipe>,
    opening: Option<Way>,
    /// The session timeout after which the ensemble expires sessions that it does not hear from.
    /// `None` never expires one.
    pub(crate) expires_after: Option<Duration>,
    heard_at: Duration,
    cut: Option<Cut>,
    /// True if the cut is silent: bytes vanish, and nobody learns of it.
    silent_cut: bool,
    /// True if a connection that a server closes is reset on the way.
    pub(crate) resets: bool,
    /// How many bytes one read of the machine takes at most.
    pub(crate) fragment: usize,
    /// All bytes that were handed to a connection, and how many of them arrived.
    handed: Vec<u8>,
    pub(crate) bytes_to_server: usize,
    pub(crate) bytes_to_client: usize,
    /// The paths of the requests, by caller.
    pub(crate) paths: Vec<String>,
    pub(crate) answers: BTreeMap<usize, Vec<Result<Answer, RequestError>>>,
    /// The callers that do not wait for their answers any more.
    pub(crate) gone: BTreeSet<usize>,
    /// The callers in the order of their answers.
    pub(crate) order: Vec<usize>,
    pub(crate) watches: BTreeMap<usize, (WatchedRead, String, WatchId)>,
    pub(crate) seen: BTreeMap<usize, Vec<WatchEvent>>,
    pub(crate) states: Vec<(Duration, ConnectionState)>,
    /// When the machine tried which host.
    pub(crate) connects: Vec<(Duration, usize)>,
    /// How long each of these hosts may take to accept.
    pub(crate) limits: Vec<Duration>,
    /// The hosts that each name has now. `None` if the name servers do not know it. A name that is
    /// not in it gets no answer.
    pub(crate) names: BTreeMap<String, Option<Vec<usize>>>,
    looking_up: Vec<Host>,
    /// When the machine looked which name up.
    pub(crate) look_ups: Vec<(Duration, String)>,
}

/// The port of all hosts.
const PORT: u16 = 2181;

/// The address of the host at this place.
pub(crate) fn address(host: usize) -> SocketAddr {
    let last = u8::try_from(host + 1).expect("few hosts");
    SocketAddr::new(IpAddr::from([10, 0, 0, last]), PORT)
}

pub(crate) fn named(name: impl Into<String>) -> Host {
    Host {
        name: name.into(),
        port: PORT,
    }
}

/// A session at so many hosts, each given by its address.
pub(crate) fn config(hosts: usize) -> Config {
    let hosts = (0..hosts).map(|host| named(address(host).ip().to_string()));
    Config {
        hosts: hosts.collect(),
        session_timeout: T,
        auth: Vec::new(),
        reply_limit: 1 << 20,
        seed: 7,
        unsupported: UnsupportedRequests::default(),
    }
}

/// As [`config`], with credentials.
pub(crate) fn config_with_credentials(hosts: usize) -> Config {
    Config {
        auth: vec![("digest".to_owned(), b"me:secret".to_vec())],
        ..config(hosts)
    }
}

impl World {
    pub(crate) fn new(config: Config) -> World {
        let now = Duration::from_secs(1000);
        World {
            now,
            ways: vec![Way::Member; config.hosts.len()],
            machine: Machine::new(now, config),
            ensemble: Ensemble::default(),
            pipe: None,
            opening: None,
            expires_after: None,
            heard_at: Duration::ZERO,
            cut: None,
            silent_cut: false,
            resets: false,
            fragment: usize::MAX,
            handed: Vec::new(),
            bytes_to_server: 0,
            bytes_to_client: 0,
            paths: Vec::new(),
            answers: BTreeMap::new(),
            gone: BTreeSet::new(),
            order: Vec::new(),
            watches: BTreeMap::new(),
            seen: BTreeMap::new(),
            states: Vec::new(),
            connects: Vec::new(),
            limits: Vec::new(),
            names: BTreeMap::new(),
            looking_up: Vec::new(),
            look_ups: Vec::new(),
        }
    }

    /// A world whose session is open. The requests of the opening are forgotten.
    pub(crate) fn connected() -> World {
        let mut world = World::new(config(3));
        world.until(World::is_connected);
        world.ensemble.requests.clear();
        world
    }

    pub(crate) fn cut_at(&mut self, cut: Cut, silently: bool) {
        self.cut = Some(cut);
        self.silent_cut = silently;
    }

    /// The name servers answer that this name has these hosts.
    pub(crate) fn knows(&mut self, name: &str, hosts: Range<usize>) {
        self.names.insert(name.to_owned(), Some(hosts.collect()));
    }

    // What callers do.

    pub(crate) fn request(&mut self, body: RequestBody) -> usize {
        let caller = self.paths.len();
        self.paths.push(body.path().unwrap_or_default().to_owned());
        self.machine.request(self.now, body, caller);
        caller
    }

    pub(crate) fn create(&mut self, path: &str) -> usize {
        self.request(create(path))
    }

    pub(crate) fn sync(&mut self, path: &str) -> usize {
        self.request(RequestBody::Sync(PathRequest::new(path)))
    }

    pub(crate) fn watch(&mut self, read: WatchedRead, path: &str) -> usize {
        let caller = self.paths.len();
        self.paths.push(path.to_owned());
        let id = self.machine.watch(self.now, read, path, caller, caller);
        self.watches.insert(caller, (read, path.to_owned(), id));
        caller
    }

    /// A caller drops the future of its request, and with it the watch if it has asked for one.
    pub(crate) fn leave(&mut self, caller: usize) {
        self.gone.insert(caller);
        self.unwatch(caller);
    }

    pub(crate) fn watch_tree(&mut self, path: &str) -> WatchId {
        self.machine.watch_tree(self.now, path)
    }

    /// All events of a tree that have come.
    pub(crate) fn tree_events(&mut self, id: &WatchId) -> Vec<TreeEvent> {
        let mut events = Vec::new();
        let context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Ok(event)) = self.machine.poll_tree(id, &context) {
            events.push(event);
        }
        events
    }

    /// Why no further event of a tree comes.
    pub(crate) fn tree_end(&mut self, id: &WatchId) -> Option<RequestError> {
        let context = Context::from_waker(Waker::noop());
        match self.machine.poll_tree(id, &context) {
            Poll::Ready(Err(error)) => Some(error),
            Poll::Ready(Ok(event)) => panic!("{event:?}"),
            Poll::Pending => None,
        }
    }

    pub(crate) fn unwatch(&mut self, watch: usize) {
        if let Some((_, _, id)) = self.watches.remove(&watch) {
            self.machine.unwatch(self.now, &id);
        }
    }

    // What the ensemble and the network do.

    /// A change by another client, if it can be made. The watches of the connection see it.
    pub(crate) fn change(&mut self, path: &str, kind: EventType) {
        let mut nobody = Served::new();
        let served = match &mut self.pipe {
            Some(pipe) if !pipe.dead => &mut pipe.served,
            _ => &mut nobody,
        };
        let _ = self.ensemble.change(served, path, kind);
    }

    /// The server closes the connection. What it has sent arrives before.
    pub(crate) fn close_connection(&mut self) {
        if let Some(pipe) = &mut self.pipe {
            pipe.served.closed = true;
        }
    }

    /// The server closes the connection, and the machine hears of it.
    pub(crate) fn lose_connection(&mut self) {
        self.close_connection();
        self.settle();
    }

    /// The session comes back over another connection.
    pub(crate) fn reconnect(&mut self) {
        self.lose_connection();
        self.until(World::is_connected);
    }

    /// The connection is gone for the machine at once.
    pub(crate) fn break_connection(&mut self) {
        if self.pipe.take().is_some() {
            let cause = match self.resets {
                true => io::Error::from(io::ErrorKind::ConnectionReset).into(),
                false => DisconnectReason::Closed,
            };
            self.machine.broken(self.now, cause);
        }
    }

    /// Nothing passes over the current connection any more.
    pub(crate) fn silence(&mut self) {
        if let Some(pipe) = &mut self.pipe {
            pipe.dead = true;
        }
    }

    /// The server sends these bytes.
    pub(crate) fn inject(&mut self, bytes: &[u8]) {
        if let Some(pipe) = &mut self.pipe {
            pipe.served.to_client.extend(bytes);
        }
    }

    pub(crate) fn has_connection(&self) -> bool {
        self.pipe.is_some()
    }

    pub(crate) fn watched_by_server(&self) -> usize {
        self.pipe.as_ref().map_or(0, |pipe| pipe.served.watched())
    }

    // Time.

    /// Moves bytes until nobody has any. Fails if that does not end.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1_000_000 {
            if !self.moves() {
                return;
            }
        }
        panic!("the machine has no rest: {:?}", self.machine);
    }

    /// Moves some bytes. False if nobody has any.
    fn moves(&mut self) -> bool {
        self.outputs() | self.carry_to_server() | self.carry_to_client()
    }

    /// Does what happens next: moves some bytes, or lets the time pass until the next deadline.
    pub(crate) fn step(&mut self) {
        if !self.moves() {
            let deadline = self.machine.deadline().expect("the session is not over");
            self.now = self.now.max(deadline);
            self.machine.elapsed(self.now);
        }
    }

    /// Lets the time pass until the machine's next deadline, or until `limit`.
    fn next(&mut self, limit: Duration) {
        let deadline = self.machine.deadline().unwrap_or(limit);
        let arrival = self.pipe.as_ref().map(|pipe| pipe.answers_at);
        let arrival = arrival.filter(|at| *at > self.now).unwrap_or(limit);
        let next = self.now.max(deadline.min(arrival).min(limit));
        self.call_early((next - self.now) / 2);
        self.now = next;
        if self.now >= deadline {
            self.machine.elapsed(self.now);
        }
        self.settle();
    }

    /// Calls the machine before its deadline, which changes nothing.
    fn call_early(&mut self, after: Duration) {
        let deadline = self.machine.deadline();
        let early = self.now + after;
        if deadline.is_some_and(|deadline| early < deadline) {
            self.machine.elapsed(early);
            let output = self.machine.poll();
            assert!(output.is_none(), "{output:?}, before {deadline:?}");
            assert_eq!(self.machine.deadline(), deadline, "at {early:?}");
        }
    }

    /// Lets this time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.comes_to(end, |world| world.now >= end);
    }

    /// Lets the time pass until this is so. Fails if it is not so after a long time.
    pub(crate) fn until(&mut self, is_so: impl Fn(&World) -> bool) {
        let is_reached = self.comes_to(self.now + 100 * T, is_so);
        assert!(is_reached, "not reached: {:?}", self.machine);
    }

    fn comes_to(&mut self, limit: Duration, is_so: impl Fn(&World) -> bool) -> bool {
        self.settle();
        for _ in 0..100_000 {
            if is_so(self) {
                return true;
            }
            if self.now >= limit {
                return false;
            }
            self.next(limit);
        }
        panic!("the machine does not let the time pass: {:?}", self.machine);
    }

    // What is known.

    pub(crate) fn state(&self) -> Option<ConnectionState> {
        self.states.last().map(|(_, state)| *state)
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.state(), Some(ConnectionState::Connected { .. }))
    }

    pub(crate) fn end(&self) -> Option<SessionEnd> {
        match self.state() {
            Some(ConnectionState::Ended(end)) => Some(end),
            _ => None,
        }
    }

    /// True if the ensemble has expired the session.
    pub(crate) fn has_expired(&self) -> bool {
        let silence = self.now - self.heard_at;
        self.ensemble.sessions.is_empty() || self.expires_after.is_some_and(|after| silence > after)
    }

    pub(crate) fn is_answered(&self, caller: usize) -> bool {
        self.answers.contains_key(&caller)
    }

    pub(crate) fn all_answered(&self) -> bool {
        let mut awaited = (0..self.paths.len()).filter(|caller| !self.gone.contains(caller));
        awaited.all(|caller| self.is_answered(caller))
    }

    pub(crate) fn obstacle(&self, host: usize) -> Option<DisconnectReason> {
        self.obstacle_at(Some(address(host)))
    }

    /// The obstacle at an address, or that of a look-up.
    pub(crate) fn obstacle_at(&self, address: Option<SocketAddr>) -> Option<DisconnectReason> {
        let obstacles = self.machine.obstacles(self.now);
        let found = obstacles.into_iter().find(|it| it.address == address);
        found.map(|it| it.cause)
    }

    /// The error code of the reply, or why there is none.
    pub(crate) fn outcome(&self, caller: usize) -> Result<ErrorCode, &RequestError> {
        let [answer] = &self.answers[&caller][..] else {
            panic!("{caller} has not one answer: {:?}", self.answers[&caller]);
        };
        answer.as_ref().map(|answer| answer.reply.header.error)
    }

    /// True if the read of this watch has set it.
    pub(crate) fn was_set(&self, watch: usize) -> bool {
        let (read, _, _) = &self.watches[&watch];
        let sets_it = |error| read.sets_watch(error);
        self.is_answered(watch) && self.outcome(watch).is_ok_and(sets_it)
    }

    /// The kinds of the requests that came to the servers.
    pub(crate) fn received(&self) -> Vec<OpCode> {
        let requests = self.ensemble.requests.iter();
        requests.map(|request| request.body.opcode()).collect()
    }

    /// What holds at each moment of each session.
    pub(crate) fn check(&self) {
        self.check_ends();
        for (caller, answers) in &self.answers {
            if let Ok(answer) = &answers[0] {
                check_answer(answer, &self.paths[*caller]);
            }
        }
    }

    /// What holds at each moment, whatever the servers send: each request and each watch has one
    /// end, and the answers come in the order of the calls.
    pub(crate) fn check_ends(&self) {
        for (caller, answers) in &self.answers {
            let path = &self.paths[*caller];
            assert_eq!(answers.len(), 1, "{caller}, {path}: {answers:?}");
            if let Err(RequestError::Broken(_)) = &answers[0] {
                assert!(self.was_handed(path), "{path} was not sent");
            }
        }
        let order = &self.order;
        assert!(order.is_sorted(), "answers came out of order: {order:?}");
        for (watch, seen) in &self.seen {
            assert_eq!(seen.len(), 1, "one end for watch {watch}: {seen:?}");
        }
    }

    /// True if a request with this path was handed to a connection.
    fn was_handed(&self, path: &str) -> bool {
        let length = u32::try_from(path.len()).expect("a short path");
        let encoded = [&length.to_be_bytes(), path.as_bytes()].concat();
        let mut handed = self.handed.windows(encoded.len());
        path.is_empty() || handed.any(|bytes| bytes == encoded)
    }

    fn outputs(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.machine.poll() {
            any = true;
            self.apply(output);
        }
        any |= self.answer_look_ups();
        match self.opening {
            Some(Way::Lost) | None => return any,
            Some(Way::Refused) => {
                let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
                self.machine.broken(self.now, refused);
            }
            Some(way) => {
                let delay = match way {
                    Way::Slow(delay) => delay,
                    _ => Duration::ZERO,
                };
                let mut served = Served::new();
                served.closed = way == Way::Closes;
                self.pipe = Some(Pipe {
                    served,
                    way,
                    answers_at: self.now + delay,
                    dead: false,
                });
                self.machine.connected(self.now);
            }
        }
        self.opening = None;
        true
    }

    /// The name servers answer.
    fn answer_look_ups(&mut self) -> bool {
        let looking_up = std::mem::take(&mut self.looking_up);
        let before = looking_up.len();
        for host in looking_up {
            let Some(found) = self.names.get(&host.name) else {
                self.looking_up.push(host);
                continue;
            };
            let unknown =
                || DisconnectReason::NoAddress(Arc::new(io::Error::other("no such name")));
            let found = found.as_ref().ok_or_else(unknown);
            let found = found.map(|hosts| hosts.iter().copied().map(address).collect());
            self.machine.looked_up(self.now, &host, found);
        }
        self.looking_up.len() < before
    }

    fn apply(&mut self, output: Output<usize, usize>) {
        match output {
            Output::LookUp(host) => {
                self.look_ups.push((self.now, host.name.clone()));
                self.looking_up.push(host);
            }
            Output::Connect {
                address: of,
                within,
                ..
            } => {
                assert!(self.pipe.is_none(), "one connection at a time");
                let mut hosts = 0..self.ways.len();
                let host = hosts.find(|host| address(*host) == of).expect("a host");
                self.connects.push((self.now, host));
                self.limits.push(within);
                self.opening = Some(self.ways[host]);
            }
            Output::Disconnect => {
                self.carry_to_server();
                self.opening = None;
                self.pipe = None;
            }
            Output::Answered(caller, answer) => {
                // A request that is asked after the close is refused before the others are answered.
                if !matches!(answer, Err(RequestError::Ended(_))) {
                    self.order.push(caller);
                }
                self.answers.entry(caller).or_default().push(answer);
            }
            Output::Watched(watch, event) => self.seen.entry(watch).or_default().push(event),
            Output::Wake(waker) => waker.wake(),
            Output::State(state) => self.states.push((self.now, state)),
        }
    }

    fn carry_to_server(&mut self) -> bool {
        let gone = &self.gone;
        self.machine.drop_unwanted(|caller| !gone.contains(caller));
        let has_expired = self.has_expired();
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        let mut bytes = Vec::new();
        self.machine.transmit(self.now, &mut bytes);
        if bytes.is_empty() {
            return false;
        }
        self.handed.extend_from_slice(&bytes);
        let mut is_cut = false;
        if let Some(Cut::ToServer(at)) = self.cut {
            let left = at.saturating_sub(self.bytes_to_server);
            is_cut = left < bytes.len();
            bytes.truncate(left);
        }
        self.bytes_to_server += bytes.len();
        if !pipe.dead && matches!(pipe.way, Way::Member | Way::Slow(_)) {
            if has_expired {
                self.ensemble.sessions.clear();
            }
            self.heard_at = self.now;
            self.ensemble.receive(&mut pipe.served, &bytes);
        }
        if is_cut {
            self.cut_now();
        }
        true
    }

    fn carry_to_client(&mut self) -> bool {
        let pipe = self.pipe.as_mut();
        let arrives = |pipe: &&mut Pipe| !pipe.dead && self.now >= pipe.answers_at;
        let Some(pipe) = pipe.filter(arrives) else {
            return false;
        };
        let mut number = pipe.served.to_client.len().min(self.fragment);
        if number == 0 && !pipe.served.closed {
            return false;
        }
        let mut is_cut = false;
        if let Some(Cut::ToClient(at)) = self.cut {
            let left = at.saturating_sub(self.bytes_to_client);
            is_cut = left < number;
            number = number.min(left);
        }
        let bytes: Vec<u8> = pipe.served.to_client.drain(..number).collect();
        self.bytes_to_client += bytes.len();
        if bytes.is_empty() && !is_cut {
            self.break_connection();
            return true;
        }
        self.machine.received(self.now, &bytes);
        if is_cut {
            self.cut_now();
        }
        true
    }

    fn cut_now(&mut self) {
        self.cut = None;
        if self.silent_cut {
            return self.silence();
        }
        self.break_connection();
    }
}

/// An answer is the answer to the request of this path.
fn check_answer(answer: &Answer, path: &str) {
    assert!(answer.exchange.sent <= answer.exchange.answered);
    match &answer.reply.body {
        ReplyBody::Create { path: answered } | ReplyBody::Sync { path: answered } => {
            assert_eq!(answered, path);
        }
        ReplyBody::Data { data, .. } => assert_eq!(data.as_deref(), Some(path.as_bytes())),
        _ => {}
    }
}

pub(crate) fn create(path: &str) -> RequestBody {
    let mode = CreateMode::Persistent;
    RequestBody::Create(CreateRequest::new(path, None, Vec::new(), mode))
}
