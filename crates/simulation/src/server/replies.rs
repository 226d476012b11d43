//! Replies, in the order of the requests, and notifications.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::Event;

use super::state::Servers;
use super::transaction::Origin;
use crate::record::request_kind::RequestKind;
use crate::wire::answer::{Answer, Failure};
use crate::wire::message::{Arriving, Downward};
use crate::wire::network::ConnectionId;

impl Servers {
    pub(super) fn reply(
        &mut self,
        id: ConnectionId,
        arriving: &Arriving,
        result: Result<Answer, Failure>,
    ) {
        let Some(connection) = self.network.connections.get(&id) else {
            return;
        };
        if arriving.lose_reply {
            return self.lose_reply(id, arriving, result);
        }
        let result = match result {
            Ok(_) if arriving.hide_outcome => Err(Failure::OutcomeUnknown),
            result => result,
        };
        if result == Err(Failure::SessionMoved) {
            self.close_at_server(id, true);
            return;
        }
        let server = connection.server;
        let ends_connection = result.as_ref().is_err_and(Failure::ends_connection);
        let reply = self.reply_of(server, arriving, result);
        self.send_down(id, reply, arriving.delay_reply);
        if ends_connection {
            self.close_at_server(id, true);
        }
        if let Some(duration) = arriving.cut_off {
            self.cut_off_or_isolate(server, duration);
        }
    }

    fn reply_of(
        &self,
        server: usize,
        arriving: &Arriving,
        result: Result<Answer, Failure>,
    ) -> Downward {
        let is_shown = self.kernel.recorder.is_on() && arriving.request.kind() != RequestKind::Ping;
        let text = is_shown.then(|| {
            let answer = match &result {
                Ok(answer) => answer.text(),
                Err(failure) => format!("{failure:?}"),
            };
            format!("{}: {answer}", arriving.request.text())
        });
        Downward::Reply {
            id: arriving.id,
            zxid: self.members[server].tree.zxid,
            result,
            text,
        }
    }

    /// The connection breaks before the last byte of the reply.
    fn lose_reply(
        &mut self,
        id: ConnectionId,
        arriving: &Arriving,
        result: Result<Answer, Failure>,
    ) {
        let Some(connection) = self.network.connections.get(&id) else {
            return;
        };
        let message = Box::new(self.reply_of(connection.server, arriving, result));
        let share = self.kernel.rng.u8(..);
        self.send_down(id, Downward::Torn { message, share }, Duration::ZERO);
        let Some(connection) = self.network.connections.get_mut(&id) else {
            return;
        };
        connection.down_broken = true;
        // What was sent before still arrives.
        let at = connection
            .last_down
            .max(self.kernel.now + Duration::from_millis(1));
        let cause = "the connection was reset";
        self.network.break_at(&mut self.kernel, at, id, cause);
    }

    /// Answers the write or the sync at the head of a connection's pipeline.
    pub(super) fn complete(&mut self, origin: Origin, result: Result<Answer, Failure>) {
        let (connection, id) = origin;
        let Some(end) = self.ends.get_mut(&connection) else {
            return;
        };
        if end.pipeline.front().is_none_or(|it| it.id != id) {
            return;
        }
        let Some(arriving) = end.pipeline.pop_front() else {
            return;
        };
        self.reply(connection, &arriving, result);
        self.drain(connection);
    }

    /// Answers the reads behind a write that has now been answered.
    fn drain(&mut self, id: ConnectionId) {
        while let Some(end) = self.ends.get_mut(&id) {
            let next = end.pipeline.front();
            if !next.is_some_and(Arriving::is_settled_here) {
                return;
            }
            if let Some(arriving) = end.pipeline.pop_front() {
                self.read(id, arriving);
            }
        }
    }

    pub(super) fn notify(&mut self, id: ConnectionId, path: String, event: Event) {
        let Some(connection) = self.network.connections.get(&id) else {
            return;
        };
        if !connection.server_open {
            return;
        }
        let name = self.network.hosts[connection.host].name.clone();
        let counters = &mut self.kernel.counters;
        counters.notifications += 1;
        *counters.notifications_of.entry(name).or_default() += 1;
        let (rate, late_by) = (self.kernel.rates.event_late, self.kernel.rates.late_by);
        let delay = if self.kernel.chance(rate) {
            self.kernel.draw_up_to(late_by)
        } else {
            Duration::ZERO
        };
        self.send_down(id, Downward::Event { path, event }, delay);
    }
}
