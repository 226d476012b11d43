//! Clients that are not simulated: how the simulation takes what they send.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::SessionId;

use super::world::World;
use crate::wire::connection::ConnectionId;
use crate::wire::greeting::Greeting;
use crate::wire::message::{Arriving, Upward};
use crate::wire::peer::Peer;
use crate::wire::request::Request;

/// The name of the process that all these clients are to the simulation.
pub(crate) const PEERS: &str = "tcp";

impl World {
    /// A client has connected to a server; `None` if the server serves nobody.
    pub(crate) fn open_peer(&mut self, server: usize, peer: Arc<dyn Peer>) -> Option<ConnectionId> {
        if self.servers.is_down(server) && !self.servers.is_read_only(server) {
            return None;
        }
        let process = self.process(PEERS);
        let client = self.next_client;
        self.next_client += 1;
        let id = self.servers.network.connect(client, process, server);
        self.peers.insert(id, peer);
        Some(id)
    }

    /// A client asks for a session, new or its own.
    pub(crate) fn greet_from_peer(
        &mut self,
        id: ConnectionId,
        session: Option<i64>,
        seen: i64,
        greeting: Greeting,
    ) {
        let connect = Upward::Connect {
            session,
            seen,
            greeting,
        };
        self.send_up(id, connect, Duration::ZERO);
    }

    /// A client sends a request, which may meet a fault.
    pub(crate) fn ask_from_peer(&mut self, id: ConnectionId, request_id: u64, request: Request) {
        let Some(connection) = self.servers.network.connections.get(&id) else {
            return;
        };
        let (client, process) = (connection.client, connection.host);
        let kind = request.kind();
        self.count(process, kind);
        let mut faults = Vec::new();
        if kind.is_asked_for() {
            self.roll_for_request(&mut faults);
        }
        if self.faults.len() > 0 {
            let session = SessionId(self.servers.session_on(id));
            faults.extend(self.faults.take(PEERS, session, kind, &request.paths()));
        }
        let arriving = Arriving::new(request_id, request);
        self.transmit_with(client, process, id, arriving, faults);
    }

    /// The connection of a client has ended.
    pub(crate) fn leave_peer(&mut self, id: ConnectionId) {
        if self.peers.remove(&id).is_some() {
            self.close_at_client(id);
        }
    }
}
