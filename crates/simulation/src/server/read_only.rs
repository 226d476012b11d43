//! Servers without a leader that go on serving clients which only read.

use zookeeper_recipes_core::Refusal;

use super::state::Servers;
use crate::wire::answer::Answer;
use crate::wire::connection::ConnectionId;
use crate::wire::greeting::Greeting;
use crate::wire::message::Arriving;
use crate::wire::request::Request;

impl Servers {
    /// A client has connected to a server without a leader. Nobody can tell whether a session of
    /// the ensemble lives, so that only new sessions are served.
    pub(super) fn greet_reader(
        &mut self,
        id: ConnectionId,
        server: usize,
        session: Option<i64>,
        seen: i64,
        greeting: Greeting,
    ) {
        let behind = seen > self.members[server].tree.zxid;
        let serves = greeting.read_only && session.is_none() && !behind;
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
