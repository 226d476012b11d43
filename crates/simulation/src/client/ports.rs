//! Servers that stop and start, and the ports that clients outside of the simulation reach them by.

use std::sync::Weak;

use super::world::World;
use crate::wire::port::Port;

impl World {
    /// Stops a server. Its port refuses connections when the world is unlocked.
    pub(crate) fn stop_member(&mut self, server: usize) {
        self.servers.stop_member(server);
        self.at_port(server, |port| port.close());
    }

    /// Starts a server that was stopped. Its port takes connections when the world is unlocked.
    pub(crate) fn start_member(&mut self, server: usize) {
        self.servers.start_member(server);
        self.at_port(server, |port| port.open());
    }

    fn at_port(&mut self, server: usize, change: impl FnOnce(&dyn Port) + Send + 'static) {
        if let Some(port) = self.ports.get(&server).and_then(Weak::upgrade) {
            self.kernel().effect(move || change(&*port));
        }
    }
}
