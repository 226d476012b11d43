//! What a server answers from its own copy of the tree.

use zookeeper_recipes_core::Refusal;

use super::state::Servers;
use crate::wire::answer::{Answer, Failure};
use crate::wire::connection::ConnectionId;
use crate::wire::message::Arriving;
use crate::wire::request::Request;

impl Servers {
    /// Answers a read from the server's own copy.
    pub(super) fn read(&mut self, id: ConnectionId, arriving: Arriving) {
        let Some(server) = self.network.connections.get(&id).map(|it| it.server) else {
            return;
        };
        let session = self.session_on(id);
        let reads_only = self.ends.get(&id).is_some_and(|end| end.reads_only);
        let sessions = self.sessions_of(server).filter(|_| !reads_only);
        let expired_here = sessions
            .is_some_and(|sessions| sessions.get(&session).is_none_or(|record| record.closing));
        let result = if expired_here {
            Err(Failure::SessionExpired)
        } else if arriving.throttled {
            Err(Refusal::Throttled.into())
        } else if arriving.hide_outcome {
            Err(Failure::OutcomeUnknown)
        } else {
            match &arriving.request {
                Request::Read(read) => self.answer_read(id, server, session, read),
                Request::Unknown => Err(Failure::UnknownType),
                _ => Ok(Answer::Done),
            }
        };
        self.reply(id, &arriving, result);
    }
}
