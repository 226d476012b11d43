//! What clients send to a server: first frames, requests, the end of a connection.

use zookeeper_recipes_protocol::{
    AuthId, AuthRequest, ConnectRequest, ErrorCode, ReplyBody, Request, RequestBody,
};

use super::access::{SUPER, identity};
use super::action::ToLeader;
use super::session::{ServerEnd, password_of};
use super::state::Servers;
use crate::record::trace::TraceKind;
use crate::wire::message::{Answer, Arriving, Fate, Upward};
use crate::wire::network::ConnectionId;
use crate::wire::request;

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
            Upward::Bytes(bytes, fate) => {
                let limit = self.options.largest_request;
                let end = self.ends.entry(id).or_insert_with(|| ServerEnd::new(limit));
                end.frames.feed(&bytes);
                self.take_frames(id, server, fate);
            }
        }
    }

    /// Takes the frames that have come whole.
    fn take_frames(&mut self, id: ConnectionId, server: usize, fate: Fate) {
        while let Some(end) = self.ends.get_mut(&id) {
            let frame = match end.frames.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(error) => return self.close_for(id, server, || error.to_string()),
            };
            let taken = if end.greeting.is_some() {
                request::decode(frame).map(|it| self.take_request(id, server, it, fate))
            } else {
                let greeting = ConnectRequest::decode(frame);
                end.greeting = greeting.as_ref().ok().cloned();
                greeting.map(|it| self.take_greeting(id, server, it))
            };
            if let Err(error) = taken {
                self.close_for(id, server, || error.to_string());
            }
        }
    }

    fn close_for(&mut self, id: ConnectionId, server: usize, reason: impl FnOnce() -> String) {
        self.kernel.trace(TraceKind::Connection, None, 0, || {
            format!("server {server} closes the connection: {}", reason())
        });
        self.close_at_server(id, true);
    }

    fn take_request(&mut self, id: ConnectionId, server: usize, request: Request, fate: Fate) {
        if self.options.closes_at(&request.body) {
            return self.close_for(id, server, || request::text(&request.body));
        }
        let at = self.kernel.now;
        let Some(end) = self.ends.get_mut(&id) else {
            return;
        };
        end.requests += 1;
        let arriving = Arriving {
            number: end.requests,
            at,
            request,
            fate,
            is_expired: false,
        };
        if end.session.is_some() {
            self.receive(id, arriving);
        } else {
            end.early.push_back(arriving);
        }
    }

    /// A client asks for a new session, or resumes one.
    pub(super) fn greet(&mut self, id: ConnectionId, server: usize, greeting: ConnectRequest) {
        if self.is_down(server) {
            return self.greet_reader(id, server, &greeting);
        }
        let session = greeting.session_id;
        let is_behind = greeting.last_zxid_seen > self.members[server].tree.zxid;
        match session == 0 || self.forgets(session) {
            true if is_behind && session == 0 => self.close_at_server(id, true),
            true => self.forward(server, ToLeader::Open(id, greeting)),
            false if is_behind => self.close_for(id, server, || {
                "it is behind what the session has seen".to_owned()
            }),
            false => self.resume(id, server, greeting),
        }
    }

    fn resume(&mut self, id: ConnectionId, server: usize, greeting: ConnectRequest) {
        for earlier in self.connections_of(server, greeting.session_id) {
            if earlier != id {
                self.close_at_server(earlier, true);
            }
        }
        if greeting.password != password_of(greeting.session_id) {
            return self.answer_greeting(id, None);
        }
        self.forward(server, ToLeader::Revalidate(id, greeting));
    }

    /// What the address of a client proves.
    pub(super) fn address_of(&self, id: ConnectionId) -> Vec<AuthId> {
        let connection = self.network.connections.get(&id);
        let address = connection.map(|it| AuthId::new("ip", it.address.as_str()));
        address.into_iter().collect()
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
        self.answer_greeting(id, Some(session));
        while let Some(end) = self.ends.get_mut(&id) {
            let Some(arriving) = end.early.pop_front() else {
                return;
            };
            self.receive(id, arriving);
        }
    }

    /// A client shows who it is, besides who it is already.
    fn authenticate(&mut self, session: i64, request: &AuthRequest) -> Answer {
        let credentials = request.auth.as_deref().unwrap_or_default();
        let identity = match self.refuses_credentials {
            true => None,
            false => identity(&request.scheme, credentials),
        };
        let identity = identity.ok_or(ErrorCode::AuthFailed)?;
        let identities = self.identities.entry(session).or_default();
        let is_super = &*identity.scheme == "digest"
            && Some(&*identity.id) == self.options.super_digest.as_deref();
        let all = [is_super.then(|| AuthId::new(SUPER, "")), Some(identity)];
        for identity in all.into_iter().flatten() {
            if &*identity.scheme != "ip" && !identities.contains(&identity) {
                identities.push(identity);
            }
        }
        Ok(ReplyBody::Empty)
    }

    /// A request on a connection whose session is settled.
    fn receive(&mut self, id: ConnectionId, mut arriving: Arriving) {
        let Some(server) = self.network.server_of(id) else {
            return;
        };
        let session = self.session_on(id);
        if arriving.fate.expire {
            self.expire(session);
        }
        self.touch(server, session);
        // A server answers these at once, past what is still to be answered.
        let answer = match &arriving.request.body {
            RequestBody::Auth(request) => Some(self.authenticate(session, request)),
            // Apache's server without a SASL configuration does not answer.
            RequestBody::Sasl(_) => Some(Err(ErrorCode::AuthFailed)),
            _ => None,
        };
        if let Some(answer) = answer {
            return self.reply(id, &arriving, answer);
        }
        let expired = self.is_expired_at(server, id);
        let Some(end) = self.ends.get_mut(&id) else {
            return;
        };
        if arriving.is_settled_here() {
            arriving.is_expired = expired;
            match end.pipeline.is_empty() {
                true => self.read(id, &arriving),
                false => end.pipeline.push_back(arriving),
            }
            return;
        }
        if end.reads_only {
            return self.answer_reader(id, &arriving);
        }
        let origin = (id, arriving.number);
        let message = match &arriving.request.body {
            RequestBody::Sync(_) => ToLeader::Sync(origin),
            RequestBody::CloseSession => ToLeader::Close(origin, session),
            body => ToLeader::Write(origin, session, body.clone()),
        };
        end.pipeline.push_back(arriving);
        self.forward(server, message);
    }

    /// A client has connected to a server without a leader. It cannot know whether a
    /// session of the ensemble lives, so it serves new sessions only.
    pub(super) fn greet_reader(
        &mut self,
        id: ConnectionId,
        server: usize,
        greeting: &ConnectRequest,
    ) {
        let behind = greeting.last_zxid_seen > self.members[server].tree.zxid;
        let serves = greeting.read_only == Some(true) && greeting.session_id == 0 && !behind;
        if !serves || !self.is_read_only(server) {
            return self.close_at_server(id, true);
        }
        let session = self.new_session(server);
        self.identities.insert(session, self.address_of(id));
        if let Some(end) = self.ends.get_mut(&id) {
            end.reads_only = true;
        }
        self.establish(id, session);
    }

    /// A request that takes a leader.
    pub(super) fn answer_reader(&mut self, id: ConnectionId, arriving: &Arriving) {
        if arriving.request.body == RequestBody::CloseSession {
            self.reply(id, arriving, Ok(ReplyBody::Empty));
            return self.close_at_server(id, true);
        }
        self.reply(id, arriving, Err(ErrorCode::NotReadOnly));
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
