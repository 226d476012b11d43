//! How connections break.

use std::time::Duration;

use super::world::World;
use crate::record::trace::TraceKind;
use crate::wire::connection::ConnectionId;
use crate::wire::message::Upward;

impl World {
    /// The client's end of a connection is closed.
    pub(super) fn close_at_client(&mut self, id: ConnectionId) {
        self.perhaps_deafen(id);
        self.send_up(id, Upward::Close, Duration::ZERO);
        let network = &mut self.servers.network;
        if let Some(connection) = network.connections.get_mut(&id) {
            connection.client_open = false;
        }
        network.forget_closed(id);
    }

    /// A client learns that its connection is broken, once its process does not stand still.
    pub(crate) fn hang_up(&mut self, connection: ConnectionId, cause: &'static str) {
        if let Some(peer) = self.peers.get(&connection).cloned() {
            self.trace_connection(TraceKind::Connection, connection, || {
                format!("disconnected: {cause}")
            });
            self.kernel().effect(move || peer.hang_up());
        }
    }

    /// Both ends learn that a connection is broken.
    pub(crate) fn break_connection(&mut self, id: ConnectionId, cause: &'static str) {
        self.servers.close_at_server(id, false);
        self.hang_up(id, cause);
    }

    /// Breaks a connection under whatever is in flight on it: what has been sent may or may not
    /// still arrive.
    pub(crate) fn cut(&mut self, connection: ConnectionId) {
        let arrives = self.kernel().rng.bool();
        let Some(found) = self.servers.network.connections.get_mut(&connection) else {
            return;
        };
        found.down_broken = true;
        if arrives {
            // Only the way back is gone: what the client has sent is still under way.
            self.trace_connection(TraceKind::Fault, connection, || {
                "the connection is cut".to_owned()
            });
            self.hang_up(connection, "the connection was cut");
        } else {
            found.up_broken = true;
            self.trace_connection(TraceKind::Fault, connection, || {
                "the connection is cut, with what was under way".to_owned()
            });
            self.break_connection(connection, "the connection was cut");
        }
    }

    /// What a client has sent into the void is perhaps not sent again once the network is mended.
    /// The server, which hears nothing, gives the connection up by itself.
    fn perhaps_deafen(&mut self, id: ConnectionId) {
        let servers = &mut self.servers;
        let session = servers.session_on(id);
        let record = servers.sessions.get(&session);
        let patience = record.map_or(servers.options.session_timeout, |record| record.timeout);
        let now = servers.kernel.now;
        let Some(connection) = servers.network.connections.get_mut(&id) else {
            return;
        };
        let mute_until = servers.network.hosts[connection.host].mute_until;
        if now < mute_until && servers.kernel.rng.bool() {
            connection.deaf = true;
            let cause = "nothing was heard of the client";
            servers
                .network
                .break_at(&mut servers.kernel, now + patience, id, cause);
        }
    }
}
