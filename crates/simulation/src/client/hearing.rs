//! What reaches a client.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::{ConnectionState, Event, SessionEnd, SessionId};

use super::action::Action;
use super::state::{Kind, Watcher};
use super::world::World;
use crate::record::trace::TraceKind;
use crate::wire::connection::{ClientId, ConnectionId};
use crate::wire::message::Downward;
use crate::wire::request::Request;

impl World {
    pub(crate) fn reach_client(&mut self, id: ConnectionId, message: Downward) {
        let Some(client) = self.client_on(id) else {
            return;
        };
        let Some(found) = self.clients.get_mut(&client) else {
            return;
        };
        let asleep = self.processes[found.process].is_still();
        if asleep || !found.held_down.is_empty() {
            found.held_down.push_back(message);
            return;
        }
        self.hear(client, message);
    }

    /// The client whose connection this is, if the client has not closed it.
    pub(super) fn client_on(&self, id: ConnectionId) -> Option<ClientId> {
        let connection = self.servers.network.connections.get(&id)?;
        let client = self.clients.get(&connection.client)?;
        (client.connection == Some(id)).then_some(connection.client)
    }

    /// A process that has woken takes what came for it meanwhile, one thing at a time.
    pub(crate) fn release(&mut self, connection: ConnectionId) {
        let Some(id) = self.client_on(connection) else {
            return;
        };
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if self.processes[client.process].is_still() {
            return;
        }
        let Some(message) = client.held_down.pop_front() else {
            return;
        };
        if !client.held_down.is_empty() {
            self.after(Duration::ZERO, Action::Release { connection });
        }
        self.hear(id, message);
    }

    fn hear(&mut self, id: ClientId, message: Downward) {
        match message {
            Downward::Close => {
                self.disconnect(id, "the server closed the connection");
                return;
            }
            Downward::Expired => {
                self.end(id, SessionEnd::Expired);
                return;
            }
            Downward::Connected {
                session, timeout, ..
            } => self.connected(id, session, timeout),
            Downward::Event { path, event } => self.dispatch(id, &path, event),
            Downward::Reply {
                id: request,
                zxid,
                result,
            } => {
                self.settle(id, request, zxid, result);
            }
        }
        let now = self.now();
        if let Some(client) = self.clients.get_mut(&id) {
            client.last_heard = now;
        }
    }

    fn connected(&mut self, id: ClientId, session: i64, timeout: Duration) {
        let now = self.now();
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let earlier = std::mem::replace(&mut client.session, session);
        client.timeout = timeout;
        client.last_heard = now;
        if !client
            .in_flight
            .iter()
            .any(|it| matches!(it.request, Request::SetWatches { .. }))
        {
            client.deadline = None;
            client.attempts = 0;
        }
        let opened = client.opened.take();
        self.trace_client(TraceKind::Connection, id, || match earlier {
            0 => "connected".to_owned(),
            earlier if earlier == session => "connected".to_owned(),
            earlier => format!("connected, no longer in session {}", SessionId(earlier)),
        });
        self.change_state(id, ConnectionState::Connected);
        if let Some(opened) = opened {
            self.kernel().send(opened, Ok(()));
        }
        self.flush(id);
    }

    /// Tells the watchers of a path what has happened to it.
    fn dispatch(&mut self, id: ClientId, path: &str, event: Event) {
        self.trace_client(TraceKind::Event, id, || format!("{path} {event:?}"));
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(watchers) = client.watchers.remove(path) else {
            self.unwatch(id, path.to_owned(), None);
            return;
        };
        let (told, kept): (Vec<Watcher>, Vec<Watcher>) =
            watchers.into_iter().partition(|watcher| match event {
                Event::Created | Event::DataChanged => watcher.kind != Kind::Children,
                Event::ChildrenChanged => watcher.kind == Kind::Children,
                _ => true,
            });
        if !kept.is_empty() {
            client.watchers.insert(path.to_owned(), kept);
        }
        for watcher in told {
            self.kernel().send(watcher.sender, event);
        }
    }
}
