//! What clients send to a server: greetings, requests, the end of a connection.

use std::time::Duration;

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::AuthId;

use super::action::ToLeader;
use super::session::password_of;
use super::state::Servers;
use crate::record::trace::TraceKind;
use crate::wire::answer::{Answer, Failure};
use crate::wire::message::{Arriving, Downward, Greeting, Upward};
use crate::wire::network::ConnectionId;
use crate::wire::request::Request;

impl Servers {
    pub(crate) fn arrive(&mut self, id: ConnectionId, message: Upward) {
        let Some(connection) = self.network.connections.get(&id) else {
            return;
        };
        if !connection.server_open || connection.deaf {
            return;
        }
        let server = connection.server;
        match message {
            Upward::Close => self.close_at_server(id, false),
            Upward::Connect(greeting) => self.greet(id, server, greeting),
            Upward::Request(arriving) if self.options.closes_at(&arriving.request) => {
                self.kernel.trace(TraceKind::Connection, None, 0, || {
                    format!(
                        "server {server} closes the connection: {}",
                        arriving.request.text()
                    )
                });
                self.close_at_server(id, true);
            }
            Upward::Request(arriving) => {
                let Some(end) = self.ends.get_mut(&id) else {
                    return;
                };
                if end.session.is_some() {
                    self.receive(id, arriving);
                } else {
                    end.early.push_back(arriving);
                }
            }
        }
    }

    /// A client asks for a new session, or resumes one.
    fn greet(&mut self, id: ConnectionId, server: usize, greeting: Greeting) {
        self.ends.entry(id).or_default().timeout = greeting.timeout;
        if self.is_down(server) {
            return self.greet_reader(id, server, greeting);
        }
        if greeting.session.is_none() && greeting.seen > self.members[server].tree.zxid {
            return self.close_at_server(id, true);
        }
        match greeting.session.filter(|session| !self.forgets(*session)) {
            None => self.forward(server, ToLeader::Open(id, greeting)),
            Some(session) => self.resume(id, server, session, greeting),
        }
    }

    fn resume(&mut self, id: ConnectionId, server: usize, session: i64, greeting: Greeting) {
        if greeting.seen > self.members[server].tree.zxid {
            self.kernel.trace(TraceKind::Connection, None, session, || {
                format!("server {server} refuses: it is behind what the session has seen")
            });
            return self.close_at_server(id, true);
        }
        for earlier in self.connections_of(server, session) {
            if earlier != id {
                self.close_at_server(earlier, true);
            }
        }
        if greeting.password != password_of(session) {
            self.send_down(id, Downward::Expired, Duration::ZERO);
            return self.close_at_server(id, true);
        }
        self.forward(server, ToLeader::Revalidate(id, session, greeting));
    }

    /// The connections on which a server serves a session.
    pub(super) fn connections_of(&self, server: usize, session: i64) -> Vec<ConnectionId> {
        self.ends
            .iter()
            .filter(|(_, end)| end.session == Some(session))
            .filter(|(id, _)| self.network.server_of(**id) == Some(server))
            .map(|(id, _)| *id)
            .collect()
    }

    /// True if a session that is resumed is answered with a new one, dead or alive.
    fn forgets(&mut self, session: i64) -> bool {
        let chance = self.kernel.rates.forgotten;
        self.options.forgets_sessions
            || self.forgotten.remove(&session)
            || self.kernel.chance(chance)
    }

    /// A session is settled on a connection.
    pub(super) fn establish(&mut self, id: ConnectionId, session: i64) {
        let Some(end) = self.ends.get_mut(&id) else {
            return;
        };
        end.session = Some(session);
        let timeout = self.options.negotiate(end.timeout);
        let connected = Downward::Connected {
            session,
            timeout,
            read_only: end.reads_only,
        };
        self.send_down(id, connected, Duration::ZERO);
        while let Some(end) = self.ends.get_mut(&id) {
            let Some(arriving) = end.early.pop_front() else {
                return;
            };
            self.receive(id, arriving);
        }
    }

    /// A client shows who it is, besides who it is already.
    fn authenticate(&mut self, session: i64, identity: Option<AuthId>) -> Result<Answer, Failure> {
        let identity = identity.ok_or(Failure::AuthenticationFailed)?;
        let identities = self.identities.entry(session).or_default();
        if identity.scheme() != "ip" && !identities.contains(&identity) {
            identities.push(identity);
        }
        Ok(Answer::Done)
    }

    /// A request on a connection whose session is settled.
    fn receive(&mut self, id: ConnectionId, arriving: Arriving) {
        let Some(server) = self.network.server_of(id) else {
            return;
        };
        let session = self.session_on(id);
        if arriving.expire {
            self.expire(session);
        }
        self.touch(server, session);
        if let Request::Authenticate(identity) = &arriving.request {
            // A server answers this at once, past what is still to be answered.
            let result = self.authenticate(session, identity.clone());
            return self.reply(id, &arriving, result);
        }
        let Some(end) = self.ends.get_mut(&id) else {
            return;
        };
        if end.reads_only && !arriving.is_settled_here() {
            return self.answer_reader(id, &arriving);
        }
        let origin = (id, arriving.id);
        let message = match &arriving.request {
            _ if arriving.is_settled_here() => {
                if end.pipeline.is_empty() {
                    self.read(id, arriving);
                } else {
                    end.pipeline.push_back(arriving);
                }
                return;
            }
            request @ (Request::Write(_) | Request::WriteAll(_) | Request::Reconfigure) => {
                ToLeader::Write(origin, session, request.clone())
            }
            Request::Sync { .. } => ToLeader::Sync(origin),
            Request::CloseSession => ToLeader::Close(origin, session),
            _ => return,
        };
        end.pipeline.push_back(arriving);
        self.forward(server, message);
    }

    /// A client has connected to a server without a leader. It cannot know whether a
    /// session of the ensemble lives, so it serves new sessions only.
    pub(super) fn greet_reader(&mut self, id: ConnectionId, server: usize, greeting: Greeting) {
        let behind = greeting.seen > self.members[server].tree.zxid;
        let serves = greeting.read_only && greeting.session.is_none() && !behind;
        if !serves || !self.is_read_only(server) {
            return self.close_at_server(id, true);
        }
        let session = self.new_session(server);
        self.identities.insert(session, greeting.identities);
        self.ends.entry(id).or_default().reads_only = true;
        self.establish(id, session);
    }

    /// A request that takes a leader.
    pub(super) fn answer_reader(&mut self, id: ConnectionId, arriving: &Arriving) {
        if matches!(arriving.request, Request::CloseSession) {
            self.reply(id, arriving, Ok(Answer::Done));
            return self.close_at_server(id, true);
        }
        self.reply(id, arriving, Err(Refusal::ReadOnly.into()));
    }

    /// A server that has only answered reads gets a leader: its clients are to come again.
    pub(super) fn end_reading(&mut self, server: usize) {
        for id in self.network.connections_to(server) {
            if self.ends.get(&id).is_some_and(|end| end.reads_only) {
                self.close_at_server(id, true);
            }
        }
    }

    /// The id of a session that nobody has had.
    pub(super) fn new_session(&mut self, server: usize) -> i64 {
        let session = ((server as i64 + 1) << 56) | self.next_session;
        self.next_session += 1;
        session
    }
}
