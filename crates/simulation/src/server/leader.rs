//! The leader: how messages between members travel, and what the leader does with them.

use std::time::Duration;

use zookeeper_recipes_protocol::{ConnectRequest, ErrorCode};

use super::access::Writer;
use super::action::{Action, FromLeader, ToLeader};
use super::member::MemberState;
use super::session::SessionRecord;
use super::state::Servers;
use super::transaction::Body;
use crate::chance::fault::Way;
use crate::wire::network::ConnectionId;

impl Servers {
    pub(super) fn forward(&mut self, server: usize, message: ToLeader) {
        let delay = if server == self.leader {
            Duration::ZERO
        } else {
            self.network.draw_delay(&mut self.kernel)
        };
        let at = (self.kernel.now + delay).max(self.members[server].last_up);
        self.members[server].last_up = at;
        let term = self.term;
        self.schedule(at, Action::ToLeader(term, server, message));
    }

    pub(super) fn send_to(&mut self, server: usize, message: FromLeader) {
        if server == self.leader {
            if self.members[server].state == MemberState::Serving {
                self.follow(server, message);
            }
            return;
        }
        let at = match message {
            // A follower lets a session continue before it has applied all commits it knows of.
            FromLeader::Revalidated(..) => self.next_heard(server),
            FromLeader::Commit { .. } | FromLeader::Synced(_) => self.in_line(server),
        };
        let term = self.term;
        self.schedule(at, Action::FromLeader(term, server, message));
    }

    /// When a follower gets a message that is sent now and that it handles at once.
    ///
    /// It applies nothing before that which the leader sends later.
    fn next_heard(&mut self, server: usize) -> Duration {
        let at = self.kernel.now + self.network.draw_delay(&mut self.kernel);
        let member = &mut self.members[server];
        member.last_heard = member.last_heard.max(at);
        member.last_heard
    }

    /// When a follower has applied a message that is sent now, after all messages before it.
    fn in_line(&mut self, server: usize) -> Duration {
        let member = &mut self.members[server];
        let delay = self.kernel.draw(&self.options.follower_lag) + member.lag;
        let at = (self.kernel.now + delay).max(member.last_heard);
        member.last_down = member.last_down.max(at);
        member.last_down
    }

    pub(super) fn reach_leader(&mut self, term: u64, server: usize, message: ToLeader) {
        match self.members[server].state {
            MemberState::Isolated => self.lead_alone(server, message),
            _ if term != self.term => {}
            MemberState::Down => {}
            MemberState::CutOff(Way::Both | Way::Up) => {
                self.members[server].held_up.push_back(message);
            }
            MemberState::Serving | MemberState::CutOff(Way::Down) => self.lead(server, message),
        }
    }

    pub(super) fn lead(&mut self, server: usize, message: ToLeader) {
        match message {
            ToLeader::Open(connection, greeting) => self.open_session(server, connection, greeting),
            ToLeader::Revalidate(connection, greeting) => {
                let valid = self.revalidate(self.leader, connection, server, &greeting);
                let chance = self.kernel.rates.replaced;
                if !valid && self.kernel.chance(chance) {
                    return self.open_session(server, connection, greeting);
                }
                let session = valid.then_some(greeting.session_id);
                self.send_to(server, FromLeader::Revalidated(connection, session));
            }
            ToLeader::Write(origin, session, request) => {
                let body = match self.check_session(self.leader, server, session) {
                    Err(error) => Body::Refused(Err(error)),
                    Ok(()) => {
                        let known = self.identities.get(&session);
                        let identities = known.cloned().unwrap_or_default();
                        self.decide(&request, &Writer::Session(session, &identities))
                    }
                };
                self.propose(session, Some(origin), body);
            }
            ToLeader::Sync(origin) if self.committed == self.log_end() => {
                self.send_to(server, FromLeader::Synced(origin));
            }
            ToLeader::Sync(origin) => {
                let last = self.log_end() - 1;
                self.syncs.push((last, server, origin));
            }
            ToLeader::Close(origin, session) => self.propose_close(session, Some(origin), false),
            ToLeader::Touched(sessions) => {
                for session in sessions {
                    self.touch_at_leader(self.leader, session);
                }
            }
        }
    }

    fn open_session(&mut self, server: usize, connection: ConnectionId, greeting: ConnectRequest) {
        let session = self.new_session(server);
        let timeout = self.options.negotiate(greeting.timeout);
        self.identities.insert(session, self.address_of(connection));
        let record = SessionRecord {
            timeout,
            opened_with: timeout,
            expires: self.expiry(timeout),
            owner: Some(server),
            closing: false,
        };
        self.sessions.insert(session, record);
        self.arm_timers();
        self.propose(session, Some((connection, 0)), Body::OpenSession);
    }

    /// Refuses a write if the leader does not take writes of the session from this server.
    pub(super) fn check_session(
        &mut self,
        leader: usize,
        server: usize,
        session: i64,
    ) -> Result<(), ErrorCode> {
        let sessions = self.sessions_of(leader);
        match sessions.and_then(|sessions| sessions.get(&session)) {
            None => Err(ErrorCode::SessionExpired),
            Some(record) if record.closing => Err(ErrorCode::SessionExpired),
            Some(record) if record.owner.is_some_and(|owner| owner != server) => {
                Err(ErrorCode::SessionMoved)
            }
            Some(_) => Ok(()),
        }
    }
}
