//! Handshakes: a slow server answers requests for a session late.

use std::ops::RangeInclusive;
use std::time::Duration;

use zookeeper_recipes_protocol::ConnectRequest;

use super::action::Action;
use super::member::SlowHandshakes;
use super::state::Servers;
use crate::wire::network::ConnectionId;

impl Servers {
    /// Makes a server answer requests for a session late, for a while.
    pub(crate) fn slow_handshakes(
        &mut self,
        server: usize,
        by: RangeInclusive<Duration>,
        duration: Duration,
    ) {
        self.trace_fault(|| {
            format!("server {server} answers handshakes later by {by:?}, for {duration:?}")
        });
        let until = self.kernel.now + duration;
        self.members[server].slow = Some(SlowHandshakes { by, until });
    }

    /// A request for a session has come to a server.
    ///
    /// A slow server takes a part of its time before it looks at the session, and the rest before
    /// it answers. If the client has closed the connection meanwhile, the server still looks at the
    /// session, and so touches it: Apache's server reads what has come before the close.
    pub(super) fn take_greeting(
        &mut self,
        id: ConnectionId,
        server: usize,
        greeting: ConnectRequest,
    ) {
        let now = self.kernel.now;
        let slow = self.members[server].slow.as_ref();
        let by = slow.filter(|it| now < it.until).map(|it| it.by.clone());
        let late = by.map_or(Duration::ZERO, |by| self.kernel.draw(&by));
        if late.is_zero() {
            return self.greet(id, server, greeting);
        }
        self.handshake_meets(id, greeting.session_id);
        let before = self.kernel.draw_up_to(late);
        if let Some(end) = self.ends.get_mut(&id) {
            end.answered_late = late - before;
        }
        let greet = Action::Greet(self.term, server, id, greeting);
        self.after(before, greet);
    }

    /// A slow server looks at the session, unless the server has begun anew meanwhile.
    pub(super) fn greet_late(
        &mut self,
        term: u64,
        server: usize,
        id: ConnectionId,
        greeting: ConnectRequest,
    ) {
        if term == self.term && !self.is_down(server) {
            self.greet(id, server, greeting);
        }
    }
}
