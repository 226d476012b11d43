//! What the servers do: the leader, the followers, and what passes between them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{
    AuthId, Created, Event, Operation, Outcome, Permission, SessionEnd, SessionId, Stat,
};

use super::faults::Way;
use super::history::{Change, Committed};
use super::proposal::{Proposal, Writer, permit};
use super::quorum::ServerState;
use super::request::{Answer, Arriving, Downward, Failure, Request, Upward};
use super::trace::TraceKind;
use super::transaction::{Body, Transaction};
use super::tree::{Applied, Edit, Owner, Tree};
use super::watches::{ConnectionId, WatchKind, Watches};
use super::world::{Action, ClientId, World};

/// The wall clock's time at which every simulation begins, in milliseconds since 1970.
const EPOCH: i64 = 1_700_000_000_000;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) tree: Tree,
    pub(super) watches: Watches,
    pub(super) state: ServerState,
    /// Whether it and the leader can reach each other.
    pub(super) linked: bool,
    /// Which cut this is, so that the end of an earlier one is not taken for its end.
    pub(super) cut: u64,
    /// The term whose leader it followed as it was cut off.
    pub(super) followed: u64,
    /// The index of the first transaction not yet applied.
    applied: u64,
    last_up: Duration,
    last_down: Duration,
    pub(super) held_up: VecDeque<ToLeader>,
    pub(super) held_down: VecDeque<FromLeader>,
    pub(super) touched: BTreeSet<i64>,
    /// What has come for it since it was paused.
    pub(super) paused: Option<Vec<Action>>,
}

impl Server {
    pub(super) fn new() -> Server {
        Server {
            tree: Tree::new(),
            watches: Watches::default(),
            state: ServerState::Serving,
            linked: true,
            cut: 0,
            followed: 0,
            applied: 0,
            last_up: Duration::ZERO,
            last_down: Duration::ZERO,
            held_up: VecDeque::new(),
            held_down: VecDeque::new(),
            touched: BTreeSet::new(),
            paused: None,
        }
    }
}

/// What a follower tells its leader.
#[derive(Debug)]
pub(super) enum ToLeader {
    Open {
        connection: ConnectionId,
        identities: Vec<AuthId>,
    },
    Revalidate {
        connection: ConnectionId,
        session: i64,
    },
    Write {
        connection: ConnectionId,
        id: u64,
        session: i64,
        request: Request,
    },
    Sync {
        connection: ConnectionId,
        id: u64,
    },
    Close {
        connection: ConnectionId,
        id: u64,
        session: i64,
    },
    Touched(Vec<i64>),
}

/// What the leader tells a follower, and itself.
#[derive(Debug)]
pub(super) enum FromLeader {
    Commit {
        index: u64,
    },
    Synced {
        connection: ConnectionId,
        id: u64,
    },
    Revalidated {
        connection: ConnectionId,
        valid: bool,
    },
}

/// A session, as the leader knows it.
#[derive(Clone, Debug)]
pub(super) struct SessionRecord {
    /// What was negotiated last.
    pub(super) timeout: Duration,
    pub(super) expires: Duration,
    /// The server through which it came last.
    pub(super) owner: Option<usize>,
    pub(super) closing: bool,
}

/// A connection between a client and a server.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: ClientId,
    pub(super) server: usize,
    pub(super) client_open: bool,
    pub(super) server_open: bool,
    /// The session that the server serves on it, once that is settled.
    pub(super) session: i64,
    established: bool,
    pub(super) last_up: Duration,
    pub(super) last_down: Duration,
    /// What is sent no longer arrives.
    pub(super) up_broken: bool,
    /// What has been sent and is under way no longer arrives either.
    pub(super) deaf: bool,
    pub(super) down_broken: bool,
    /// Requests that came before the session was settled.
    early: VecDeque<Arriving>,
    /// Requests that wait for their turn: reads behind the writes of their own session.
    pipeline: VecDeque<Arriving>,
    pub(super) held_down: VecDeque<Downward>,
}

impl Connection {
    pub(super) fn new(client: ClientId, server: usize) -> Connection {
        Connection {
            client,
            server,
            client_open: true,
            server_open: true,
            session: 0,
            established: false,
            last_up: Duration::ZERO,
            last_down: Duration::ZERO,
            up_broken: false,
            deaf: false,
            down_broken: false,
            early: VecDeque::new(),
            pipeline: VecDeque::new(),
            held_down: VecDeque::new(),
        }
    }
}

/// What clients say to servers.
impl World {
    pub(super) fn arrive(&mut self, id: ConnectionId, message: Upward) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        if !connection.server_open || connection.deaf {
            return;
        }
        let server = connection.server;
        match message {
            Upward::Close => self.close_at_server(id, false),
            Upward::Connect { session: None, .. } => self.open(id, server),
            Upward::Connect {
                session: Some(session),
                ..
            } if self.forgets(session) => self.open(id, server),
            Upward::Connect {
                session: Some(session),
                seen,
            } => {
                if seen > self.servers[server].tree.zxid {
                    self.trace(TraceKind::Connection, None, session, || {
                        format!("server {server} refuses: it is behind what the session has seen")
                    });
                    self.close_at_server(id, true);
                    return;
                }
                let earlier: Vec<ConnectionId> = self
                    .connections
                    .iter()
                    .filter(|(other, it)| {
                        **other != id
                            && it.server == server
                            && it.session == session
                            && it.server_open
                    })
                    .map(|(other, _)| *other)
                    .collect();
                for earlier in earlier {
                    self.close_at_server(earlier, true);
                }
                self.forward(
                    server,
                    ToLeader::Revalidate {
                        connection: id,
                        session,
                    },
                );
            }
            Upward::Request(arriving) if self.options.closes_at(&arriving.request) => {
                self.trace(TraceKind::Connection, None, 0, || {
                    format!(
                        "server {server} closes the connection: {}",
                        arriving.request.text()
                    )
                });
                self.close_at_server(id, true);
            }
            Upward::Request(arriving) => {
                let Some(connection) = self.connections.get_mut(&id) else {
                    return;
                };
                if connection.established {
                    self.receive(id, arriving);
                } else {
                    connection.early.push_back(arriving);
                }
            }
        }
    }

    fn open(&mut self, connection: ConnectionId, server: usize) {
        let identities = self.identities_on(connection);
        self.forward(
            server,
            ToLeader::Open {
                connection,
                identities,
            },
        );
    }

    /// What the client on a connection authenticates as.
    fn identities_on(&self, connection: ConnectionId) -> Vec<AuthId> {
        self.connections
            .get(&connection)
            .and_then(|it| self.clients.get(&it.client))
            .map(|it| it.identities.clone())
            .unwrap_or_default()
    }

    /// Whether a session that comes back is given a new one, dead or alive.
    fn forgets(&mut self, session: i64) -> bool {
        let chance = self.rates.forgotten;
        self.options.forgets_sessions || self.forgotten.remove(&session) || self.chance(chance)
    }

    /// A request on a connection whose session is settled.
    fn receive(&mut self, id: ConnectionId, arriving: Arriving) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let (server, session) = (connection.server, connection.session);
        if arriving.expire {
            self.expire(session);
        }
        self.touch(server, session);
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let request_id = arriving.id;
        let message = match &arriving.request {
            _ if arriving.is_settled_here() => {
                if connection.pipeline.is_empty() {
                    self.read(id, arriving);
                } else {
                    connection.pipeline.push_back(arriving);
                }
                return;
            }
            request @ (Request::Create { .. } | Request::Delete { .. } | Request::Transact(_)) => {
                ToLeader::Write {
                    connection: id,
                    id: request_id,
                    session,
                    request: request.clone(),
                }
            }
            Request::Sync { .. } => ToLeader::Sync {
                connection: id,
                id: request_id,
            },
            Request::CloseSession => ToLeader::Close {
                connection: id,
                id: request_id,
                session,
            },
            _ => return,
        };
        connection.pipeline.push_back(arriving);
        self.forward(server, message);
    }

    /// Answers a read from the server's own copy.
    fn read(&mut self, id: ConnectionId, arriving: Arriving) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let (server, session) = (connection.server, connection.session);
        let expired_here = self
            .sessions_of(server)
            .is_some_and(|sessions| sessions.get(&session).is_none_or(|record| record.closing));
        let result = if expired_here {
            Err(Failure::SessionExpired)
        } else if arriving.throttled {
            Err(Refusal::Throttled.into())
        } else {
            self.answer(id, server, session, &arriving.request)
        };
        self.reply(id, &arriving, result);
    }

    fn answer(
        &mut self,
        id: ConnectionId,
        server: usize,
        session: i64,
        request: &Request,
    ) -> Result<Answer, Failure> {
        let identities = self.identities.get(&session).cloned().unwrap_or_default();
        let reader = Writer::Session(session, &identities);
        let exists_asks_for_permission = self.options.exists_asks_for_permission();
        let at = server;
        let server = &mut self.servers[at];
        match request {
            Request::List { path, watch } => {
                let node = server.tree.get(path).ok_or(Refusal::NoNode)?;
                permit(&node.acl, Permission::READ, &reader)?;
                let names = node.children.iter().cloned().collect();
                if *watch {
                    server.watches.add(path, WatchKind::Children, id);
                }
                Ok(Answer::Children(names))
            }
            Request::Get { path, watch } => {
                let node = server.tree.get(path).ok_or(Refusal::NoNode)?;
                permit(&node.acl, Permission::READ, &reader)?;
                let answer = Answer::Data(node.data.clone(), node.stat());
                if *watch {
                    server.watches.add(path, WatchKind::Data, id);
                }
                Ok(answer)
            }
            Request::Exists { path } => {
                let node = server.tree.get(path);
                if let Some(node) = node.filter(|_| exists_asks_for_permission) {
                    permit(&node.acl, Permission::READ, &reader)?;
                }
                let stat = node.map(super::tree::Znode::stat);
                server.watches.add(path, WatchKind::Data, id);
                Ok(Answer::Exists(stat))
            }
            Request::GetEach(paths) => {
                let mut nodes = Vec::new();
                for path in paths {
                    nodes.push(match server.tree.get(path) {
                        None => None,
                        Some(node) => {
                            permit(&node.acl, Permission::READ, &reader)?;
                            Some((node.data.clone(), node.stat()))
                        }
                    });
                }
                Ok(Answer::Each(nodes))
            }
            Request::RemoveWatch { path, kind } => {
                if server.watches.remove(path, *kind, id) {
                    Ok(Answer::Done)
                } else {
                    Err(Refusal::Other("no such watch".to_owned()).into())
                }
            }
            Request::SetWatches {
                zxid,
                data,
                exists,
                children,
            } => {
                let mut renewed: Vec<(&String, Renewed)> = [
                    (data, Renewed::Data),
                    (exists, Renewed::Exists),
                    (children, Renewed::Children),
                ]
                .into_iter()
                .flat_map(|(paths, kind)| paths.iter().map(move |path| (path, kind)))
                .collect();
                self.renew_watches(id, at, *zxid, &mut renewed);
                Ok(Answer::Done)
            }
            _ => Ok(Answer::Done),
        }
    }

    /// Sets watches again one by one, in any order. Transactions may be applied in between, so that
    /// what has come of them is told before what came of older ones.
    fn renew_watches(
        &mut self,
        id: ConnectionId,
        at: usize,
        seen: i64,
        renewed: &mut [(&String, Renewed)],
    ) {
        self.rng.shuffle(renewed);
        let interrupted_at = self.rng.usize(..=2 * renewed.len());
        for (index, (path, kind)) in renewed.iter().enumerate() {
            if index == interrupted_at && self.servers[at].state == ServerState::Serving {
                self.catch_up(at, self.committed);
            }
            // The end of its session may have been among them, which has taken its watches away.
            if !self.connections.get(&id).is_some_and(|it| it.server_open) {
                return;
            }
            if let Some(event) = renew_watch(&mut self.servers[at], id, seen, path, *kind) {
                self.notify(id, (*path).clone(), event);
            }
        }
    }

    fn reply(&mut self, id: ConnectionId, arriving: &Arriving, result: Result<Answer, Failure>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if arriving.lose_reply {
            connection.down_broken = true;
            // What was answered before still arrives.
            let at = connection
                .last_down
                .max(self.now + Duration::from_millis(1));
            let cause = "the connection was reset";
            self.schedule(
                at,
                Action::Break {
                    connection: id,
                    cause,
                },
            );
            return;
        }
        if result == Err(Failure::SessionMoved) {
            self.close_at_server(id, true);
            return;
        }
        let server = connection.server;
        let zxid = self.servers[server].tree.zxid;
        let expired = result == Err(Failure::SessionExpired);
        let delay = arriving.delay_reply;
        self.send_down(
            id,
            Downward::Reply {
                id: arriving.id,
                zxid,
                result,
            },
            delay,
        );
        if expired {
            self.close_at_server(id, true);
        }
        if let Some(duration) = arriving.cut_off {
            self.cut_off_or_isolate(server, duration);
        }
    }

    /// What stood behind a write that has now been answered.
    fn drain(&mut self, id: ConnectionId) {
        while let Some(connection) = self.connections.get_mut(&id) {
            let next = connection.pipeline.front();
            if !next.is_some_and(Arriving::is_settled_here) || !connection.server_open {
                return;
            }
            if let Some(arriving) = connection.pipeline.pop_front() {
                self.read(id, arriving);
            }
        }
    }

    fn notify(&mut self, id: ConnectionId, path: String, event: Event) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        if !connection.server_open {
            return;
        }
        let client = connection.client;
        self.counters.notifications += 1;
        if let Some(found) = self.clients.get(&client) {
            let name = self.processes[found.process].name.clone();
            *self.counters.notifications_of.entry(name).or_default() += 1;
        }
        let (rate, late_by) = (self.rates.event_late, self.rates.late_by);
        let delay = if self.chance(rate) {
            self.draw_up_to(late_by)
        } else {
            Duration::ZERO
        };
        self.send_down(id, Downward::Event { path, event }, delay);
    }

    pub(super) fn send_down(&mut self, id: ConnectionId, message: Downward, extra: Duration) {
        let delay = self.network_delay() + extra;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.client_open || connection.down_broken {
            return;
        }
        let Some(client) = self.clients.get(&connection.client) else {
            return;
        };
        let reachable = self.processes[client.process].deaf_until;
        let at = (self.now + delay).max(connection.last_down).max(reachable);
        connection.last_down = at;
        self.schedule(
            at,
            Action::ToClient {
                connection: id,
                message,
            },
        );
    }

    /// The server is done with a connection; whether it lets the client know.
    pub(super) fn close_at_server(&mut self, id: ConnectionId, tell: bool) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.server_open {
            return;
        }
        connection.server_open = false;
        connection.pipeline.clear();
        connection.early.clear();
        let server = connection.server;
        self.servers[server].watches.remove_connection(id);
        if tell {
            self.send_down(id, Downward::Close, Duration::ZERO);
        }
        self.forget_closed(id);
    }

    pub(super) fn forget_closed(&mut self, id: ConnectionId) {
        if self
            .connections
            .get(&id)
            .is_some_and(|it| !it.client_open && !it.server_open)
        {
            self.connections.remove(&id);
        }
    }
}

/// What servers say to each other.
impl World {
    fn forward(&mut self, server: usize, message: ToLeader) {
        let delay = if server == self.leader {
            Duration::ZERO
        } else {
            self.network_delay()
        };
        let at = (self.now + delay).max(self.servers[server].last_up);
        self.servers[server].last_up = at;
        let term = self.term;
        self.schedule(
            at,
            Action::ToLeader {
                term,
                server,
                message,
            },
        );
    }

    fn tell(&mut self, server: usize, message: FromLeader) {
        if server == self.leader {
            if self.servers[server].state == ServerState::Serving {
                self.follow(server, message);
            }
            return;
        }
        let lag = self.options.follower_lag.clone();
        let delay = self.draw(&lag);
        let at = (self.now + delay).max(self.servers[server].last_down);
        self.servers[server].last_down = at;
        let term = self.term;
        self.schedule(
            at,
            Action::FromLeader {
                term,
                server,
                message,
            },
        );
    }

    pub(super) fn reach_leader(&mut self, term: u64, server: usize, message: ToLeader) {
        match self.servers[server].state {
            ServerState::Isolated => self.lead_alone(server, message),
            _ if term != self.term => {}
            ServerState::Down => {}
            ServerState::CutOff(Way::Both | Way::Up) => {
                self.servers[server].held_up.push_back(message);
            }
            ServerState::Serving | ServerState::CutOff(Way::Down) => self.lead(server, message),
        }
    }

    pub(super) fn lead(&mut self, server: usize, message: ToLeader) {
        match message {
            ToLeader::Open {
                connection,
                identities,
            } => {
                let session = ((server as i64 + 1) << 56) | self.next_session;
                self.next_session += 1;
                self.identities.insert(session, identities);
                let timeout = self.options.negotiate();
                let record = SessionRecord {
                    timeout,
                    expires: self.expiry(timeout),
                    owner: Some(server),
                    closing: false,
                };
                self.sessions.insert(session, record);
                self.arm_timers();
                self.propose(session, Some((connection, 0)), Body::OpenSession);
            }
            ToLeader::Revalidate {
                connection,
                session,
            } => {
                let valid = self.revalidate(self.leader, session, server);
                let chance = self.rates.replaced;
                if !valid && self.chance(chance) {
                    let identities = self.identities_on(connection);
                    return self.lead(
                        server,
                        ToLeader::Open {
                            connection,
                            identities,
                        },
                    );
                }
                self.tell(server, FromLeader::Revalidated { connection, valid });
            }
            ToLeader::Write {
                connection,
                id,
                session,
                request,
            } => {
                let body = match self.check_session(self.leader, server, session) {
                    Err(failure) => Body::Refused(failure),
                    Ok(()) => {
                        let identities = self.identities.get(&session).cloned().unwrap_or_default();
                        let (operations, several) =
                            request.operations().unwrap_or((Vec::new(), false));
                        self.decide(&operations, several, &Writer::Session(session, &identities))
                    }
                };
                self.propose(session, Some((connection, id)), body);
            }
            ToLeader::Sync { connection, id } => {
                if self.committed == self.log_end() {
                    self.tell(server, FromLeader::Synced { connection, id });
                } else {
                    let last = self.log_end() - 1;
                    self.syncs.push((last, server, connection, id));
                }
            }
            ToLeader::Close {
                connection,
                id,
                session,
            } => {
                let origin = Some((connection, id));
                self.propose_close(session, origin, false);
            }
            ToLeader::Touched(sessions) => {
                for session in sessions {
                    self.touch_at_leader(self.leader, session);
                }
            }
        }
    }

    /// Whether a leader takes a write of a session from a server.
    pub(super) fn check_session(
        &mut self,
        leader: usize,
        server: usize,
        session: i64,
    ) -> Result<(), Failure> {
        let sessions = self.sessions_of(leader);
        match sessions.and_then(|sessions| sessions.get(&session)) {
            None => Err(Failure::SessionExpired),
            Some(record) if record.closing => Err(Failure::SessionExpired),
            Some(record) if record.owner.is_some_and(|owner| owner != server) => {
                Err(Failure::SessionMoved)
            }
            Some(_) => Ok(()),
        }
    }

    /// Turns operations into a transaction's body, on top of all that has been proposed.
    pub(super) fn decide(
        &mut self,
        operations: &[Operation],
        several: bool,
        writer: &Writer<'_>,
    ) -> Body {
        let mut proposal = Proposal::new(&self.tree, &self.outstanding);
        let mut edits = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            match proposal.add(operation, writer) {
                Ok(edit) => edits.push(edit),
                Err(refusal) => {
                    let operation = several.then_some(index);
                    return Body::Refused(Failure::Refused { operation, refusal });
                }
            }
        }
        let zxid = (self.epoch << 32) | (self.proposals + 1);
        for (path, creates) in proposal.promised() {
            self.outstanding.insert(path, (creates, zxid));
        }
        Body::Write { edits, several }
    }

    pub(super) fn propose(
        &mut self,
        session: i64,
        origin: Option<(ConnectionId, u64)>,
        body: Body,
    ) -> u64 {
        self.proposals += 1;
        let zxid = (self.epoch << 32) | self.proposals;
        let transaction = Arc::new(Transaction {
            zxid,
            session,
            origin,
            proposed: self.now,
            body,
        });
        apply(&mut self.tree, &transaction, |_, _| {});
        let index = self.log_end();
        self.log.push_back(transaction);
        let delay = self.options.commit_delay.clone();
        let delay = self.draw(&delay);
        let at = (self.now + delay).max(self.last_commit);
        self.last_commit = at;
        self.schedule(at, Action::Commit { index });
        index
    }

    pub(super) fn propose_close(
        &mut self,
        session: i64,
        origin: Option<(ConnectionId, u64)>,
        expired: bool,
    ) -> u64 {
        if let Some(record) = self.sessions.get_mut(&session) {
            record.closing = true;
        }
        let mut ephemerals = self.tree.ephemerals(session);
        // The server keeps them in a hash set: their order means nothing, and none may be relied
        // on.
        self.rng.shuffle(&mut ephemerals);
        self.propose(
            session,
            origin,
            Body::CloseSession {
                ephemerals,
                expired,
            },
        )
    }

    pub(super) fn log_end(&self) -> u64 {
        self.log_start + self.log.len() as u64
    }

    fn has_quorum(&self) -> bool {
        let serving = self
            .servers
            .iter()
            .filter(|server| server.state == ServerState::Serving)
            .count();
        serving > self.servers.len() / 2
    }

    /// Commits all up to this transaction.
    pub(super) fn commit(&mut self, index: u64) {
        if !self.has_quorum() || self.now < self.stalled_until {
            self.commits_held = true;
            return;
        }
        while self.committed <= index && self.committed < self.log_end() {
            let index = self.committed;
            self.committed += 1;
            let transaction = Arc::clone(&self.log[(index - self.log_start) as usize]);
            self.remember(&transaction);
            if let Body::CloseSession { .. } = transaction.body {
                self.sessions.remove(&transaction.session);
            }
            self.catch_up(self.leader, index + 1);
            for server in 0..self.servers.len() {
                if server != self.leader {
                    self.tell(server, FromLeader::Commit { index });
                }
            }
            let zxid = transaction.zxid;
            self.outstanding.retain(|_, (_, promised)| *promised > zxid);
            let (due, later) = std::mem::take(&mut self.syncs)
                .into_iter()
                .partition(|(last, ..)| *last <= index);
            self.syncs = later;
            let due: Vec<(u64, usize, ConnectionId, u64)> = due;
            for (_, server, connection, id) in due {
                self.tell(server, FromLeader::Synced { connection, id });
            }
        }
    }

    fn remember(&mut self, transaction: &Transaction) {
        let session = transaction.session;
        self.trace(TraceKind::Transaction, None, session, || {
            format!("{:#x} {}", transaction.zxid, transaction.text())
        });
        let by = (session != 0).then_some(SessionId(session));
        let at = self.now;
        let zxid = transaction.zxid;
        let mut commit = |change| {
            let committed = Committed {
                zxid,
                at,
                session: by,
                change,
            };
            if let Some(observer) = self.commit_observer.clone() {
                let committed = committed.clone();
                self.effects.push(Box::new(move || observer(&committed)));
            }
            self.history.push(committed);
            self.gauge.committed(self.history.len());
        };
        match &transaction.body {
            Body::Refused(_) => return,
            Body::OpenSession => {
                commit(Change::SessionOpened {
                    session: SessionId(session),
                });
            }
            Body::CloseSession {
                ephemerals,
                expired,
            } => {
                let end = if *expired {
                    SessionEnd::Expired
                } else {
                    SessionEnd::Closed
                };
                commit(Change::SessionEnded {
                    session: SessionId(session),
                    end,
                });
                for path in ephemerals {
                    commit(Change::Deleted { path: path.clone() });
                }
            }
            Body::Write { edits, .. } => {
                for edit in edits {
                    match edit {
                        Edit::Check | Edit::SetAcl { .. } => {}
                        Edit::Create {
                            path, data, owner, ..
                        } => {
                            let ephemeral_owner = match owner {
                                Owner::Session(session) => Some(SessionId(*session)),
                                _ => None,
                            };
                            commit(Change::Created {
                                path: path.clone(),
                                ephemeral_owner,
                                data: data.clone(),
                            });
                        }
                        Edit::Delete { path } => commit(Change::Deleted { path: path.clone() }),
                        Edit::SetData { path, data, .. } => {
                            commit(Change::DataSet {
                                path: path.clone(),
                                data: data.clone(),
                            });
                        }
                    }
                }
            }
        }
        self.counters.transactions += 1;
    }

    pub(super) fn reach_follower(&mut self, term: u64, server: usize, message: FromLeader) {
        if term != self.term {
            return;
        }
        match self.servers[server].state {
            ServerState::Down | ServerState::Isolated => {}
            ServerState::CutOff(Way::Both | Way::Down) => {
                self.servers[server].held_down.push_back(message);
            }
            ServerState::Serving | ServerState::CutOff(Way::Up) => self.follow(server, message),
        }
    }

    pub(super) fn follow(&mut self, server: usize, message: FromLeader) {
        match message {
            FromLeader::Commit { index } => self.catch_up(server, index + 1),
            FromLeader::Synced { connection, id } => {
                self.complete(connection, id, Ok(Answer::Done));
            }
            FromLeader::Revalidated { connection, valid } => {
                let Some(found) = self.connections.get(&connection) else {
                    return;
                };
                let session = self
                    .clients
                    .get(&found.client)
                    .map_or(0, |client| client.session);
                if valid {
                    self.establish(connection, session);
                } else {
                    self.send_down(connection, Downward::Expired, Duration::ZERO);
                    self.close_at_server(connection, true);
                }
            }
        }
    }

    /// A server applies what it has not yet applied, up to this index.
    pub(super) fn catch_up(&mut self, server: usize, end: u64) {
        while self.servers[server].applied < end {
            let index = self.servers[server].applied;
            self.servers[server].applied += 1;
            if index < self.log_start {
                continue;
            }
            let transaction = Arc::clone(&self.log[(index - self.log_start) as usize]);
            self.apply_at(server, &transaction);
        }
        let needed = self.servers.iter().map(|it| it.applied).min().unwrap_or(0);
        while self.log_start < needed && self.log_start < self.committed {
            self.log.pop_front();
            self.log_start += 1;
        }
    }

    fn apply_at(&mut self, at: usize, transaction: &Transaction) {
        let mut notifications = Vec::new();
        let mut outcomes = Vec::new();
        let server = &mut self.servers[at];
        let watches = &mut server.watches;
        apply(&mut server.tree, transaction, |edit, applied| {
            if let (Some(trigger), Some(path)) = (applied.trigger, edit.path()) {
                for (connection, path, event) in watches.trigger(path, trigger) {
                    let acl = match event {
                        Event::ChildrenChanged => applied.parent_acl.clone(),
                        _ => applied.acl.clone(),
                    };
                    notifications.push((connection, path, event, acl));
                }
            }
            outcomes.push((edit.clone(), applied.stat));
        });
        for (connection, path, event, acl) in notifications {
            // The watch is spent on who may not read the znode, but nothing is told.
            let session = self.connections.get(&connection).map_or(0, |it| it.session);
            let identities = self.identities.get(&session).map_or(&[][..], Vec::as_slice);
            let reader = Writer::Session(session, identities);
            if permit(&acl, Permission::READ, &reader).is_ok() {
                self.notify(connection, path, event);
            }
        }
        match &transaction.body {
            Body::OpenSession => {
                if let Some((connection, _)) = transaction.origin {
                    if self
                        .connections
                        .get(&connection)
                        .is_some_and(|it| it.server == at)
                    {
                        self.establish(connection, transaction.session);
                    }
                }
            }
            Body::CloseSession { .. } => {
                self.answer_origin(at, transaction, Ok(Answer::Done));
                let ended: Vec<ConnectionId> = self
                    .connections
                    .iter()
                    .filter(|(_, it)| it.server == at && it.session == transaction.session)
                    .map(|(id, _)| *id)
                    .collect();
                for id in ended {
                    self.close_at_server(id, true);
                }
            }
            Body::Refused(failure) => {
                self.answer_origin(at, transaction, Err(failure.clone()));
            }
            Body::Write { several, .. } => {
                let answer = if *several {
                    let tells = self.options.transactions_tell_metadata();
                    let outcomes = outcomes
                        .into_iter()
                        .map(|(edit, stat)| outcome(edit, stat, tells))
                        .collect();
                    Answer::Outcomes(outcomes)
                } else {
                    match outcomes.pop() {
                        Some((Edit::Create { path, .. }, Some(stat))) => {
                            Answer::Created(Created { path, stat })
                        }
                        _ => Answer::Done,
                    }
                };
                self.answer_origin(at, transaction, Ok(answer));
            }
        }
    }

    fn answer_origin(
        &mut self,
        server: usize,
        transaction: &Transaction,
        result: Result<Answer, Failure>,
    ) {
        let Some((connection, id)) = transaction.origin else {
            return;
        };
        if self
            .connections
            .get(&connection)
            .is_some_and(|it| it.server == server)
        {
            self.complete(connection, id, result);
        }
    }

    /// Answers the write or the sync at the head of a connection's pipeline.
    fn complete(&mut self, connection: ConnectionId, id: u64, result: Result<Answer, Failure>) {
        let Some(found) = self.connections.get_mut(&connection) else {
            return;
        };
        if !found.server_open || found.pipeline.front().is_none_or(|it| it.id != id) {
            return;
        }
        let Some(arriving) = found.pipeline.pop_front() else {
            return;
        };
        self.reply(connection, &arriving, result);
        self.drain(connection);
    }

    fn establish(&mut self, id: ConnectionId, session: i64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.server_open {
            return;
        }
        connection.established = true;
        connection.session = session;
        let timeout = self.options.negotiate();
        self.send_down(id, Downward::Connected { session, timeout }, Duration::ZERO);
        while let Some(connection) = self.connections.get_mut(&id) {
            let Some(arriving) = connection.early.pop_front() else {
                return;
            };
            self.receive(id, arriving);
        }
    }
}

/// Sessions, and what is done by the clock.
impl World {
    /// When a session of this timeout expires that is touched now: rounded up to the next tick.
    pub(super) fn expiry(&self, timeout: Duration) -> Duration {
        let tick = self.options.tick.as_millis().max(1) as u64;
        let end = (self.now + timeout).as_millis() as u64;
        Duration::from_millis((end / tick + 1) * tick)
    }

    fn touch(&mut self, server: usize, session: i64) {
        if self.sessions_of(server).is_some() {
            self.touch_at_leader(server, session);
        } else {
            self.servers[server].touched.insert(session);
        }
    }

    /// A server that leads, or thinks that it does, gives a session its whole timeout. Whether the
    /// session lives.
    pub(super) fn touch_at_leader(&mut self, server: usize, session: i64) -> bool {
        let record = |world: &mut World, expires: Option<Duration>| {
            let sessions = world.sessions_of(server)?;
            let record = sessions.get_mut(&session)?;
            record.expires = expires.unwrap_or(record.expires);
            (!record.closing).then_some(record.timeout)
        };
        let Some(timeout) = record(self, None) else {
            return false;
        };
        let expires = self.expiry(timeout);
        record(self, Some(expires)).is_some()
    }

    fn arm_timers(&mut self) {
        if self.timers_armed {
            return;
        }
        self.timers_armed = true;
        let tick = self.options.tick.as_millis().max(1) as u64;
        let next = (self.now.as_millis() as u64 / tick + 1) * tick;
        self.schedule(Duration::from_millis(next), Action::ExpireSessions);
        if self.servers.len() > 1 {
            self.after(self.options.tick / 2, Action::TouchSessions);
        }
        self.after(self.options.container_interval, Action::ReapContainers);
    }

    pub(super) fn expire_sessions(&mut self) {
        let overdue: Vec<i64> = self
            .sessions
            .iter()
            .filter(|(_, record)| !record.closing && record.expires <= self.now)
            .map(|(session, _)| *session)
            .collect();
        if self.servers[self.leader].state == ServerState::Serving {
            for session in overdue {
                self.expire(session);
            }
        }
        self.expire_alone();
        if self.sessions.is_empty() {
            // Nothing more to watch over: a paused clock shall be able to come to rest.
            self.timers_armed = false;
        } else {
            self.after(self.options.tick, Action::ExpireSessions);
        }
    }

    pub(super) fn expire(&mut self, session: i64) {
        let alive = self
            .sessions
            .get(&session)
            .is_some_and(|record| !record.closing);
        if alive {
            self.trace(TraceKind::Connection, None, session, || {
                "the leader expires the session".to_owned()
            });
            self.propose_close(session, None, true);
        }
    }

    pub(super) fn touch_sessions(&mut self) {
        for server in 0..self.servers.len() {
            let found = &self.servers[server];
            let hears_pings = match found.state {
                ServerState::Serving | ServerState::CutOff(Way::Up) => true,
                ServerState::CutOff(_) | ServerState::Isolated | ServerState::Down => false,
            };
            if hears_pings && found.paused.is_none() {
                self.answer_ping(server);
            }
        }
        if self.timers_armed {
            self.after(self.options.tick / 2, Action::TouchSessions);
        }
    }

    /// A follower tells its leader which sessions it has heard of since the last ping.
    pub(super) fn answer_ping(&mut self, server: usize) {
        let touched = std::mem::take(&mut self.servers[server].touched);
        if server != self.leader && !touched.is_empty() {
            self.forward(server, ToLeader::Touched(touched.into_iter().collect()));
        }
    }

    /// A session has come to a server: whether it lives. Requests that another server still passes
    /// on are no longer its own.
    pub(super) fn revalidate(&mut self, leader: usize, session: i64, server: usize) -> bool {
        let timeout = self.options.negotiate();
        let sessions = self.sessions_of(leader);
        let Some(record) = sessions.and_then(|it| it.get_mut(&session)) else {
            return false;
        };
        if !record.closing {
            record.owner = Some(server);
            record.timeout = timeout;
        }
        self.touch_at_leader(leader, session)
    }

    pub(super) fn reap_containers_by_timer(&mut self) {
        self.reap_containers();
        if self.timers_armed {
            self.after(self.options.container_interval, Action::ReapContainers);
        }
    }

    /// Deletes the containers that have had children and have none now.
    pub(super) fn reap_containers(&mut self) -> Vec<String> {
        let leader = &self.servers[self.leader].tree;
        let candidates: Vec<String> = leader
            .iter()
            .filter(|(_, node)| {
                node.owner == Owner::Container
                    && node.children.is_empty()
                    && node.stat().cversion > 0
            })
            .map(|(path, _)| path.clone())
            .collect();
        let mut reaped = Vec::new();
        for path in candidates {
            let delete = Operation::Delete {
                path: path.clone(),
                version: None,
            };
            let body = self.decide(&[delete], false, &Writer::Reaper);
            if matches!(body, Body::Write { .. }) {
                reaped.push(path);
            }
            self.propose(0, None, body);
        }
        reaped
    }
}

/// Applies a transaction to a tree, telling each edit and what came of it.
pub(super) fn apply(
    tree: &mut Tree,
    transaction: &Transaction,
    mut done: impl FnMut(&Edit, Applied),
) {
    let zxid = transaction.zxid;
    let time = EPOCH + transaction.proposed.as_millis() as i64;
    match &transaction.body {
        Body::Write { edits, .. } => {
            for edit in edits {
                done(edit, tree.apply(edit, zxid, time));
            }
        }
        Body::CloseSession { ephemerals, .. } => {
            for path in ephemerals {
                let edit = Edit::Delete { path: path.clone() };
                done(&edit, tree.apply(&edit, zxid, time));
            }
        }
        Body::Refused(_) | Body::OpenSession => {}
    }
    tree.zxid = zxid;
}

fn outcome(edit: Edit, stat: Option<Stat>, tells_metadata: bool) -> Outcome {
    match (edit, stat) {
        (Edit::Create { path, owner, .. }, Some(stat)) => {
            let tells = tells_metadata || owner == Owner::Container;
            let stat = if tells { stat } else { NO_METADATA };
            Outcome::Created(Created { path, stat })
        }
        (Edit::SetData { .. }, Some(stat)) => Outcome::DataSet(stat),
        (Edit::Delete { .. }, _) => Outcome::Deleted,
        _ => Outcome::Checked,
    }
}

/// What the client makes of a reply without metadata: [`Stat::is_invalid`].
const NO_METADATA: Stat = Stat {
    czxid: -1,
    mzxid: -1,
    pzxid: -1,
    ctime: 0,
    mtime: 0,
    version: -1,
    cversion: -1,
    aversion: -1,
    ephemeral_owner: 0,
    data_length: 0,
    num_children: 0,
};

/// A watch that a session which has come back sets again.
#[derive(Clone, Copy)]
enum Renewed {
    Data,
    Exists,
    Children,
}

/// Sets a watch of a session that has come back, or tells what it has missed: the rule of the
/// server's `DataTree.setWatches`.
fn renew_watch(
    server: &mut Server,
    id: ConnectionId,
    seen: i64,
    path: &str,
    kind: Renewed,
) -> Option<Event> {
    let node = server.tree.get(path);
    let missed = match (kind, node) {
        (Renewed::Data | Renewed::Children, None) => Some(Event::Deleted),
        (Renewed::Data, Some(node)) if node.modified() > seen => Some(Event::DataChanged),
        (Renewed::Exists, Some(_)) => Some(Event::Created),
        (Renewed::Children, Some(node)) if node.pzxid > seen => Some(Event::ChildrenChanged),
        _ => None,
    };
    if missed.is_none() {
        let kind = match kind {
            Renewed::Data | Renewed::Exists => WatchKind::Data,
            Renewed::Children => WatchKind::Children,
        };
        server.watches.add(path, kind, id);
    }
    missed
}
