//! When a client sends a sign of life, and when it gives up a connection.

use std::time::Duration;

use super::action::Action;
use super::world::World;
use crate::wire::connection::ClientId;
use crate::wire::request::Request;

impl World {
    pub(super) fn arm_timer(&mut self, id: ClientId) {
        let now = self.now();
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let tick = client.timeout / 20;
        if client.timer_armed || client.connection.is_none() {
            return;
        }
        client.timer_armed = true;
        let silence = client.last_heard + tick * 8;
        let idle = client.last_sent + (tick * 3).min(Duration::from_secs(10));
        let at = silence.min(idle.max(now + tick));
        // The client looks at its clock once a tick only.
        let late = self.kernel().rng.u64(0..=tick.as_millis() as u64 / 2);
        self.schedule(
            at.max(now + tick / 2) + Duration::from_millis(late),
            Action::ClientTimer { client: id },
        );
    }

    pub(crate) fn client_timer(&mut self, id: ClientId) {
        let now = self.now();
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let tick = client.timeout / 20;
        if self.processes[client.process].is_still() {
            client.timer_missed = true;
            return;
        }
        client.timer_armed = false;
        if client.connection.is_none() {
            return;
        }
        if now >= client.last_heard + tick * 8 {
            self.disconnect(id, "no answer for too long");
            return;
        }
        let idle = (tick * 3).min(Duration::from_secs(10));
        if client.is_connected() && !client.pinging && now >= client.last_sent + idle {
            client.pinging = true;
            self.transmit(id, Request::Ping, None);
        }
        self.arm_timer(id);
    }
}
