//! What is due next, of all that the network, the servers and the clients have to do.

use std::time::Duration;

use crate::client::action::Action;
use crate::client::world::World;
use crate::engine::kernel::Slot;
use crate::wire::network::Delivery;

/// What came of a step.
pub(super) enum Step {
    /// Something has happened that a task could notice, or tasks are being woken.
    Noticed,
    /// There is nothing to do before this time, if ever.
    Wait(Option<Duration>),
}

/// Whose agenda the next action is on.
#[derive(Clone, Copy)]
enum Next {
    Network,
    Servers,
    Clients,
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
            let Some(((at, _), next)) = self.next_of_all() else {
                return Step::Wait(None);
            };
            if at > self.now() {
                return Step::Wait(Some(at));
            }
            self.do_next(next);
            if !self.kernel().effects.is_empty() {
                return Step::Noticed;
            }
        }
    }

    fn next_of_all(&self) -> Option<(Slot, Next)> {
        let of_network = self.servers.network.next().map(|it| (it, Next::Network));
        let of_servers = self.servers.next().map(|it| (it, Next::Servers));
        let of_clients = self.next().map(|it| (it, Next::Clients));
        [of_network, of_servers, of_clients]
            .into_iter()
            .flatten()
            .min_by_key(|(slot, _)| *slot)
    }

    fn do_next(&mut self, next: Next) {
        let kernel = &mut self.servers.kernel;
        kernel.gauge.count(kernel.now);
        match next {
            Next::Network => {
                if let Some(delivery) = self.servers.network.take(kernel) {
                    self.deliver(delivery);
                }
            }
            Next::Servers => {
                if let Some(action) = self.servers.take() {
                    self.servers.perform(action);
                }
            }
            Next::Clients => {
                if let Some(action) = self.take() {
                    self.perform(action);
                }
            }
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::ToServer {
                connection,
                message,
            } => self.servers.reach_server(connection, message),
            Delivery::ToClient {
                connection,
                message,
            } => match self.peers.get(&connection).cloned() {
                Some(peer) => self.kernel().effect(move || peer.hear(message)),
                None => self.reach_client(connection, message),
            },
            Delivery::Break { connection, cause } => self.break_connection(connection, cause),
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Release { connection } => self.release(connection),
            Action::ClientTimer { client } => self.client_timer(client),
            Action::Reconnect { client, attempt } => self.reconnect(client, attempt),
            Action::AttemptFailed { client, attempt } => self.attempt_failed(client, attempt),
            Action::Wake { process, at } => self.wake(process, at),
            Action::Unblock { process, at } => self.unblock(process, at),
            Action::RollDice => self.roll_dice(),
        }
    }
}
