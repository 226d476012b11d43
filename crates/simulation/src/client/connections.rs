//! The clients' ends of connections: how they open, close and break.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::process::ProcessId;
use super::world::World;
use crate::record::trace::TraceKind;
use crate::wire::message::Upward;
use crate::wire::network::{ConnectionId, Peer, Port};

/// The name of the process that all clients over TCP are to the simulation.
#[cfg(feature = "embedded")]
pub(crate) const PEERS: &str = "tcp";

/// The answer to a look-up of a name.
pub(crate) enum LookUp {
    /// The addresses of the name, after this time.
    Found(Vec<SocketAddr>, Duration),
    /// No answer, which is known after this time.
    Failed(Duration),
}

/// The result of an attempt to connect to a server.
pub(crate) enum Knock {
    /// Nobody answers.
    Lost,
    /// The server refuses the connection after this time.
    Refused(Duration),
    /// The server accepts the connection after this time.
    Accepted { server: usize, after: Duration },
}

impl World {
    /// A client of a process looks a name up.
    pub(crate) fn look_up(&mut self, name: &str) -> LookUp {
        let kernel = self.kernel();
        let (late, longest) = (kernel.rates.look_up_late, kernel.rates.look_up_late_by);
        let after = match kernel.chance(late) {
            true => kernel.draw_up_to(longest),
            false => Duration::ZERO,
        };
        if kernel.chance(kernel.rates.look_up_failed) {
            return LookUp::Failed(after);
        }
        LookUp::Found(self.servers.network.names.addresses(name), after)
    }

    /// A client of a process tries to connect to an address.
    pub(crate) fn knock(&mut self, process: ProcessId, address: SocketAddr) -> Knock {
        let preferred = self.processes[process].reconnects_to.take();
        let preferred = preferred.map(|server| server % self.servers.members.len());
        let now = self.now();
        let network = &self.servers.network;
        let host = &network.hosts[process];
        let is_cut_off = now < host.mute_until.max(host.deaf_until);
        let server = preferred.or_else(|| network.names.server_at(address));
        let Some(server) = server.filter(|_| !is_cut_off) else {
            return Knock::Lost;
        };
        let after = self.servers.network.draw_delay(&mut self.servers.kernel);
        match self.servers.is_down(server) {
            true => Knock::Refused(after),
            false => Knock::Accepted { server, after },
        }
    }

    /// A client at this address has connected to a server; `None` if the server serves nobody.
    pub(crate) fn open_peer(
        &mut self,
        process: ProcessId,
        server: usize,
        address: String,
        peer: Arc<dyn Peer>,
    ) -> Option<ConnectionId> {
        if self.servers.is_down(server) && !self.servers.is_read_only(server) {
            return None;
        }
        let id = self.servers.network.connect(process, server, address);
        self.peers.insert(id, peer);
        self.trace_connection(TraceKind::Connection, id, || {
            format!("connecting to server {server}")
        });
        Some(id)
    }

    /// The client has closed its end of a connection.
    pub(crate) fn leave_peer(&mut self, id: ConnectionId) {
        if self.peers.remove(&id).is_some() {
            self.close_at_client(id);
        }
    }

    /// A client's connection ends before a removal of a watch is answered.
    pub(crate) fn interrupt_removal(&mut self, process: ProcessId) {
        let name = self.name_of(process).to_owned();
        let counters = &mut self.kernel().counters;
        *counters.interrupted_removals.entry(name).or_default() += 1;
    }

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

    /// A client learns that its connection is broken, once its process is not paused.
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
        self.servers.meets("disconnected", |id, _| id == connection);
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
                "the connection is cut, with the messages under way".to_owned()
            });
            self.break_connection(connection, "the connection was cut");
        }
    }

    /// Messages that a client sent during a partition may never arrive, even after its end.
    ///
    /// The server hears nothing of the client, and gives the connection up.
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

    /// Gives a server another address, as if it were started again on another machine.
    ///
    /// Its connections break. Nobody answers at the old address.
    pub(crate) fn move_member(&mut self, server: usize) {
        self.servers.network.names.move_server(server);
        self.kernel().trace(TraceKind::Fault, None, 0, || {
            format!("server {server} has another address")
        });
        for connection in self.servers.network.connections_to(server) {
            self.cut(connection);
        }
    }

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
