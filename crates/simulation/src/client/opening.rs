//! How a session's owner opens it and lets go of it.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use zookeeper_recipes_core::ensemble::{AuthId, ConnectionState};

use super::action::Action;
use super::state::{Client, Opened};
use super::world::World;
use crate::process::machine::ProcessId;
use crate::wire::connection::ClientId;

impl World {
    pub(crate) fn open_client(
        &mut self,
        process: ProcessId,
        identities: Vec<AuthId>,
    ) -> (
        ClientId,
        oneshot::Receiver<Opened>,
        watch::Receiver<ConnectionState>,
    ) {
        let id = self.next_client;
        self.next_client += 1;
        let (opened, receiver) = oneshot::channel();
        let mut hosts: Vec<usize> = (0..self.servers.members.len()).collect();
        self.kernel().rng.shuffle(&mut hosts);
        let timeout = self.servers.options.session_timeout;
        let mut client = Client::new(process, identities, timeout, hosts, self.now());
        client.opened = Some(opened);
        let states = client.states.subscribe();
        self.clients.insert(id, client);
        let connect = Action::Reconnect {
            client: id,
            attempt: 0,
        };
        self.after(Duration::ZERO, connect);
        (id, receiver, states)
    }

    /// Nobody waits for this client's session any more: it is left to its timeout.
    pub(crate) fn abandon(&mut self, id: ClientId) {
        self.close_connection_of(id);
        self.clients.remove(&id);
    }

    /// The owner has let go of the session: it is closed once all that was asked has been sent.
    pub(crate) fn close(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.has_ended().is_some() {
            self.clients.remove(&id);
            return;
        }
        client.closing = true;
        self.flush(id);
    }
}
