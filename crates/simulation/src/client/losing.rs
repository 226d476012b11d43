//! How a client loses its connection, and its session.

use std::collections::VecDeque;
use std::time::Duration;

use zookeeper_recipes_core::ServerError;
use zookeeper_recipes_core::ensemble::{ConnectionState, Event, SessionEnd, TransactionError};

use super::action::Action;
use super::errors::{outcome_unknown, session_over};
use super::state::InFlight;
use super::world::World;
use crate::record::trace::TraceKind;
use crate::wire::connection::{ClientId, ConnectionId};
use crate::wire::message::{Downward, Upward};

impl World {
    pub(super) fn change_state(&mut self, id: ClientId, state: ConnectionState) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.state == state || client.has_ended().is_some() {
            return;
        }
        client.state = state;
        let states = client.states.clone();
        self.kernel().effect(move || {
            states.send_replace(state);
        });
    }

    /// A client closes its connection, if it has one.
    pub(super) fn close_connection_of(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if let Some(connection) = client.connection.take() {
            client.held_down.clear();
            self.close_at_client(connection);
        }
    }

    /// The client's end of a connection is closed.
    pub(super) fn close_at_client(&mut self, id: ConnectionId) {
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
            return self.kernel().effect(move || peer.hang_up());
        }
        let Some(id) = self.client_on(connection) else {
            return;
        };
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if self.processes[client.process].is_still() {
            client.held_down.push_back(Downward::Close);
        } else {
            self.disconnect(id, cause);
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
        let client = found.client;
        found.down_broken = true;
        if arrives {
            // Only the way back is gone: what the client has sent is still under way.
            self.trace_client(TraceKind::Fault, client, || {
                "the connection is cut".to_owned()
            });
            self.hang_up(connection, "the connection was cut");
        } else {
            found.up_broken = true;
            self.trace_client(TraceKind::Fault, client, || {
                "the connection is cut, with what was under way".to_owned()
            });
            self.break_connection(connection, "the connection was cut");
        }
    }

    pub(super) fn disconnect(&mut self, id: ClientId, cause: &'static str) {
        let kernel = &mut self.servers.kernel;
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(connection) = client.connection.take() else {
            return;
        };
        client.held_down.clear();
        let was_ready = client.is_ready();
        if was_ready {
            client.deadline = Some(client.last_heard + client.timeout * 7 / 5);
            client.attempts = 0;
            kernel.rng.shuffle(&mut client.hosts);
            client.next_host = 0;
        }
        client.pinging = false;
        client.watching.clear();
        client.unwatching.clear();
        let in_flight = std::mem::take(&mut client.in_flight);
        self.trace_client(TraceKind::Connection, id, || {
            format!("disconnected: {cause}")
        });
        self.close_at_client(connection);
        self.perhaps_deafen(id, connection, cause);
        self.change_state(id, ConnectionState::Disconnected);
        self.fail_in_flight(in_flight, || outcome_unknown(cause));
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.attempt += 1;
        let attempt = client.attempt;
        let action = if was_ready {
            Action::Reconnect {
                client: id,
                attempt,
            }
        } else {
            Action::AttemptFailed {
                client: id,
                attempt,
            }
        };
        self.after(Duration::ZERO, action);
    }

    /// What a client has sent into the void is perhaps not sent again once the network is mended.
    /// The server, which hears nothing, gives the connection up by itself.
    fn perhaps_deafen(&mut self, id: ClientId, connection: ConnectionId, cause: &'static str) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let patience = client.timeout;
        let servers = &mut self.servers;
        let now = servers.kernel.now;
        let mute_until = servers.network.hosts[client.process].mute_until;
        if now < mute_until && servers.kernel.rng.bool() {
            if let Some(found) = servers.network.connections.get_mut(&connection) {
                found.deaf = true;
            }
            servers
                .network
                .break_at(&mut servers.kernel, now + patience, connection, cause);
        }
    }

    fn fail_in_flight(
        &mut self,
        in_flight: VecDeque<InFlight>,
        error: impl Fn() -> TransactionError,
    ) {
        for each in in_flight {
            if let Some(responder) = each.responder {
                let error = error();
                self.kernel().send(responder, Err(error));
            }
        }
    }

    /// The session is over, for its client at least.
    pub(super) fn end(&mut self, id: ClientId, end: SessionEnd) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.has_ended().is_some() {
            return;
        }
        let watchers = std::mem::take(&mut client.watchers);
        let in_flight = std::mem::take(&mut client.in_flight);
        let pending = std::mem::take(&mut client.pending);
        let opened = client.opened.take();
        let closing = client.closing;
        self.trace_client(TraceKind::Connection, id, || {
            format!("the session is over: {end}")
        });
        self.close_connection_of(id);
        self.change_state(id, ConnectionState::Ended(end));
        for watcher in watchers.into_values().flatten() {
            self.kernel().send(watcher.sender, Event::SessionEnded(end));
        }
        self.fail_in_flight(in_flight, || session_over(end));
        for (_, responder) in pending {
            self.kernel().send(responder, Err(session_over(end)));
        }
        if let Some(opened) = opened {
            self.kernel()
                .send(opened, Err(ServerError::SessionOver(end)));
        }
        if closing {
            self.clients.remove(&id);
        }
    }
}
