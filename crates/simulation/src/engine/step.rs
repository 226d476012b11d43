//! One step of a simulation: the next action of the network, the servers or the clients.

use std::time::Duration;

use super::kernel::Slot;
use crate::client::world::{Action, World};
use crate::record::trace::TraceKind;
use crate::server::action;
use crate::wire::message::{Downward, Note};
use crate::wire::network::{ConnectionId, Delivery};

/// The result of a step.
pub(super) enum Step {
    /// Something has happened that a task could notice, or tasks are being woken.
    Noticed,
    /// There is nothing to do before this time, if ever.
    Wait(Option<Duration>),
}

impl World {
    /// Does what is due, up to the first thing that a task could notice.
    pub(super) fn step(&mut self) -> Step {
        if self.turns.settles() {
            return Step::Noticed;
        }
        if let Some(waker) = self.turns.draw(&mut self.servers.kernel.rng) {
            self.kernel().effect(move || waker.wake());
            return Step::Noticed;
        }
        loop {
            let Some(slot @ (at, _)) = self.next_of_all() else {
                return Step::Wait(None);
            };
            if at > self.now() {
                return Step::Wait(Some(at));
            }
            self.do_next(slot);
            if !self.kernel().effects.is_empty() {
                return Step::Noticed;
            }
        }
    }

    fn next_of_all(&self) -> Option<Slot> {
        let of_network = self.servers.network.agenda.next();
        let all = [of_network, self.servers.agenda.next(), self.agenda.next()];
        all.into_iter().flatten().min()
    }

    fn do_next(&mut self, slot: Slot) {
        let kernel = &mut self.servers.kernel;
        kernel.gauge.count(kernel.now);
        if self.servers.network.agenda.next() == Some(slot) {
            if let Some(delivery) = self.servers.network.agenda.take(kernel) {
                self.deliver(delivery);
            }
        } else if self.servers.agenda.next() == Some(slot) {
            if let Some(action) = self.servers.agenda.take(kernel) {
                self.servers.perform(action);
            }
        } else if let Some(action) = self.agenda.take(kernel) {
            self.perform(action);
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::ToServer(connection, message) => {
                let action = action::Action::Arrive(connection, message);
                self.servers.perform(action);
            }
            Delivery::ToClient(connection, message) => {
                if let Some(peer) = self.peers.get(&connection).cloned() {
                    self.count_arrival(connection, &message);
                    self.trace_arrival(connection, &message);
                    self.kernel().effect(move || peer.hear(message));
                }
            }
            Delivery::Break(connection, cause) => self.break_connection(connection, cause),
        }
    }

    /// Notes which requests still wait for their replies.
    fn count_arrival(&mut self, id: ConnectionId, message: &Downward) {
        let connections = &mut self.servers.network.connections;
        let (Some(connection), Downward::Bytes(_, note)) = (connections.get_mut(&id), message)
        else {
            return;
        };
        match note {
            Note::Connected { .. } => connection.granted = true,
            Note::Reply { .. } => drop(connection.asked.pop_front()),
            _ => {}
        }
    }

    /// Notes in the trace what has come to a client.
    fn trace_arrival(&mut self, id: ConnectionId, message: &Downward) {
        let connection = |text: &str| (TraceKind::Connection, Some(text.to_owned()));
        let (kind, text) = match message {
            Downward::Close => connection("disconnected: the server closed the connection"),
            Downward::Bytes(_, note) => match note {
                Note::Connected { .. } => connection("connected"),
                Note::Expired => connection("expired"),
                Note::Event(kind, path) => (TraceKind::Event, Some(format!("{path} {kind:?}"))),
                Note::Reply { text, .. } => (TraceKind::Reply, text.clone()),
                Note::Cut(number, of) => {
                    let text = format!("{number} of {of} bytes of a reply");
                    (TraceKind::Fault, Some(text))
                }
            },
        };
        if let Some(text) = text {
            self.trace_connection(kind, id, || text);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Wake(process, at) => self.wake(process, at),
            Action::Unblock(process, at) => self.unblock(process, at),
            Action::RollDice => self.roll_dice(),
        }
    }
}
