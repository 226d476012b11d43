//! Sessions that live and expire, and what the servers do by the clock.

use std::time::Duration;

use zookeeper_recipes_protocol::ConnectRequest;

use super::action::{Action, ToLeader};
use super::member::MemberState;
use super::state::Servers;
use crate::chance::fault::Way;
use crate::record::trace::TraceKind;
use crate::wire::network::ConnectionId;

impl Servers {
    /// The expiry of a session that is touched now, rounded up to the next tick.
    pub(crate) fn expiry(&self, timeout: Duration) -> Duration {
        let tick = self.options.tick.as_millis().max(1) as u64;
        let end = (self.kernel.now + timeout).as_millis() as u64;
        Duration::from_millis((end / tick + 1) * tick)
    }

    pub(super) fn touch(&mut self, server: usize, session: i64) {
        if self.sessions_of(server).is_some() {
            self.touch_at_leader(server, session);
        } else {
            self.members[server].touched.insert(session);
        }
    }

    /// A server that leads, or thinks that it does, gives a session its whole timeout. True if
    /// the session lives.
    pub(crate) fn touch_at_leader(&mut self, server: usize, session: i64) -> bool {
        let record = |servers: &mut Servers, expires: Option<Duration>| {
            let sessions = servers.sessions_of(server)?;
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

    pub(super) fn arm_timers(&mut self) {
        if self.timers_armed {
            return;
        }
        self.timers_armed = true;
        self.schedule(self.expiry(Duration::ZERO), Action::ExpireSessions);
        if self.members.len() > 1 {
            self.after(self.options.tick / 2, Action::TouchSessions);
        }
        self.after(self.options.container_interval, Action::ReapContainers);
    }

    pub(crate) fn expire_sessions(&mut self) {
        let overdue: Vec<i64> = self
            .sessions
            .iter()
            .filter(|(_, record)| !record.closing && record.expires <= self.kernel.now)
            .map(|(session, _)| *session)
            .collect();
        if self.members[self.leader].state == MemberState::Serving {
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

    pub(crate) fn expire(&mut self, session: i64) {
        let record = self.sessions.get(&session);
        if record.is_some_and(|record| !record.closing) {
            self.kernel.trace(TraceKind::Connection, None, session, || {
                "the leader expires the session".to_owned()
            });
            self.propose_close(session, None, true);
        }
    }

    pub(crate) fn touch_sessions(&mut self) {
        for server in 0..self.members.len() {
            let found = &self.members[server];
            let hears_pings = match found.state {
                MemberState::Serving | MemberState::CutOff(Way::Up) => true,
                MemberState::CutOff(_) | MemberState::Isolated | MemberState::Down => false,
            };
            if hears_pings && found.paused.is_none() {
                self.answer_ping(server);
            }
        }
        if self.timers_armed {
            self.after(self.options.tick / 2, Action::TouchSessions);
        }
    }

    /// A follower reports to its leader which sessions it has heard of since the last ping.
    pub(crate) fn answer_ping(&mut self, server: usize) {
        let touched = std::mem::take(&mut self.members[server].touched);
        if server != self.leader && !touched.is_empty() {
            self.forward(server, ToLeader::Touched(touched.into_iter().collect()));
        }
    }

    /// A session was resumed at a server. True if the session lives.
    ///
    /// The leader refuses requests of the session that another server still passes on.
    pub(crate) fn revalidate(
        &mut self,
        leader: usize,
        connection: ConnectionId,
        server: usize,
        greeting: &ConnectRequest,
    ) -> bool {
        let session = greeting.session_id;
        let timeout = self.options.negotiate(greeting.timeout);
        let sessions = self.sessions_of(leader);
        let Some(record) = sessions.and_then(|it| it.get_mut(&session)) else {
            return false;
        };
        if !record.closing {
            record.owner = Some(server);
            record.timeout = timeout;
        }
        self.identities.insert(session, self.address_of(connection));
        self.touch_at_leader(leader, session)
    }
}
