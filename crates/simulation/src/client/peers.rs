//! Connections of clients, and what clients send on them.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::{AuthId, SessionId};
use zookeeper_recipes_protocol::ConnectRequest;

use super::world::World;
use crate::process::machine::ProcessId;
use crate::record::request_kind::RequestKind;
use crate::record::trace::TraceKind;
use crate::wire::connection::ConnectionId;
use crate::wire::greeting::Greeting;
use crate::wire::message::{Arriving, Upward};
use crate::wire::peer::Peer;
use crate::wire::request::Request;

/// The name of the process that all clients over TCP are to the simulation.
#[cfg(feature = "embedded")]
pub(crate) const PEERS: &str = "tcp";

/// What comes of a try to connect to a server.
pub(crate) enum Knock {
    /// Nobody answers.
    Lost,
    /// The server refuses the connection after this time.
    Refused(Duration),
    /// The server accepts the connection after this time.
    Accepted { server: usize, after: Duration },
}

impl World {
    /// A client of a process tries to connect to a server.
    pub(crate) fn knock(&mut self, process: ProcessId, server: usize) -> Knock {
        let preferred = self.processes[process].reconnects_to.take();
        let server = preferred.unwrap_or(server) % self.servers.members.len();
        let now = self.now();
        let host = &self.servers.network.hosts[process];
        if now < host.mute_until.max(host.deaf_until) {
            return Knock::Lost;
        }
        let after = self.servers.network.draw_delay(&mut self.servers.kernel);
        match self.servers.is_down(server) {
            true => Knock::Refused(after),
            false => Knock::Accepted { server, after },
        }
    }

    /// A client has connected to a server; `None` if the server serves nobody.
    pub(crate) fn open_peer(
        &mut self,
        process: ProcessId,
        server: usize,
        peer: Arc<dyn Peer>,
    ) -> Option<ConnectionId> {
        if self.servers.is_down(server) && !self.servers.is_read_only(server) {
            return None;
        }
        let id = self.servers.network.connect(process, server);
        self.peers.insert(id, peer);
        self.trace_connection(TraceKind::Connection, id, || {
            format!("connecting to server {server}")
        });
        Some(id)
    }

    /// A client at this address asks for a session, new or its own.
    pub(crate) fn greet_from_peer(
        &mut self,
        id: ConnectionId,
        request: ConnectRequest,
        address: &str,
    ) {
        let connect = Upward::Connect {
            session: (request.session_id != 0).then_some(request.session_id),
            seen: request.last_zxid_seen,
            greeting: Greeting {
                identities: vec![AuthId::new("ip", address)],
                timeout: Duration::from_millis(request.timeout.max(0) as u64),
                read_only: request.read_only == Some(true),
                password: request.password,
            },
        };
        self.send_up(id, connect, Duration::ZERO);
    }

    /// A client sends a request, which may meet faults.
    pub(crate) fn ask_from_peer(&mut self, id: ConnectionId, request_id: u64, request: Request) {
        let Some(connection) = self.servers.network.connections.get(&id) else {
            return;
        };
        let process = connection.host;
        let kind = request.kind();
        self.count(process, kind);
        if kind != RequestKind::Ping {
            self.trace_connection(TraceKind::Request, id, || request.text());
        }
        let mut faults = Vec::new();
        if self.faults.len() > 0 {
            let session = SessionId(self.servers.session_on(id));
            let name = &self.servers.network.hosts[process].name;
            faults = self.faults.take(name, session, kind, &request.paths());
        }
        if kind.is_asked_for() {
            self.roll_for_request(&mut faults);
            self.roll_for_outcome(kind, &mut faults);
        }
        let arriving = Arriving::new(request_id, request);
        self.transmit_with(process, id, arriving, faults);
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
}
