//! Processes that sleep, are cut off from the servers, or lose a connection.

use std::time::Duration;

use super::faults::Way;
use super::request::Downward;
use super::trace::TraceKind;
use super::watches::ConnectionId;
use super::world::{Action, ClientId, ProcessId, World};

/// Processes that sleep, and that are cut off.
impl World {
    pub(super) fn fall_asleep(&mut self, process: ProcessId, duration: Duration) {
        let until = self.now + duration;
        let asleep_until = self.processes[process].asleep_until;
        if asleep_until.is_some_and(|earlier| earlier >= until) {
            return;
        }
        self.trace(TraceKind::Fault, Some(process), 0, || {
            format!("asleep for {duration:?}")
        });
        self.processes[process].asleep_until = Some(until);
        self.schedule(until, Action::Wake { process, at: until });
    }

    pub(super) fn wake_now(&mut self, process: ProcessId) {
        let found = &self.processes[process];
        if let Some(until) = found.asleep_until.filter(|_| !found.is_dead()) {
            self.wake(process, until);
        }
    }

    pub(super) fn kill(&mut self, process: ProcessId) {
        self.trace(TraceKind::Fault, Some(process), 0, || "killed".to_owned());
        let connections: Vec<ConnectionId> = self
            .clients
            .values_mut()
            .filter(|client| client.process == process)
            .filter_map(|client| client.connection.take())
            .collect();
        for connection in connections {
            self.close_at_client(connection);
        }
        self.processes[process].asleep_until = Some(Duration::MAX);
    }

    pub(super) fn wake(&mut self, process: ProcessId, at: Duration) {
        if self.processes[process].asleep_until != Some(at) {
            return;
        }
        self.trace(TraceKind::Fault, Some(process), 0, || "awake".to_owned());
        self.processes[process].asleep_until = None;
        self.move_on(process);
    }

    /// What the sessions of a process do by themselves stands still, and so do their clients.
    pub(super) fn block(&mut self, process: ProcessId, duration: Duration) {
        let until = self.now + duration;
        let blocked_until = self.processes[process].blocked_until;
        if blocked_until.is_some_and(|earlier| earlier >= until) {
            return;
        }
        self.trace(TraceKind::Fault, Some(process), 0, || {
            format!("the runtime of its sessions is blocked for {duration:?}")
        });
        self.processes[process].blocked_until = Some(until);
        self.schedule(until, Action::Unblock { process, at: until });
    }

    pub(super) fn unblock(&mut self, process: ProcessId, at: Duration) {
        if self.processes[process].blocked_until != Some(at) {
            return;
        }
        self.trace(TraceKind::Fault, Some(process), 0, || {
            "the runtime of its sessions goes on".to_owned()
        });
        self.processes[process].blocked_until = None;
        self.move_on(process);
    }

    /// What stood still goes on, unless something else holds it up.
    fn move_on(&mut self, process: ProcessId) {
        let wakers = std::mem::take(&mut self.processes[process].wakers);
        let mut wakers: Vec<_> = wakers.into_values().collect();
        // Which of its tasks goes on first is nobody's promise.
        self.rng.shuffle(&mut wakers);
        for waker in wakers {
            self.effect(move || waker.wake());
        }
        if self.processes[process].is_still() {
            return;
        }
        let clients: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, client)| client.process == process)
            .map(|(id, _)| *id)
            .collect();
        for id in clients {
            // Whether its timers or its sockets come first is nobody's promise.
            let timers_first = self.rng.bool();
            let Some(client) = self.clients.get_mut(&id) else {
                continue;
            };
            let timer = std::mem::take(&mut client.timer_missed);
            let reconnect = std::mem::take(&mut client.reconnect_missed);
            let attempt = client.attempt;
            let connection = client.connection;
            if timer && timers_first {
                self.client_timer(id);
            }
            if let Some(connection) = connection {
                self.after(Duration::ZERO, Action::Release { connection });
            }
            if timer && !timers_first {
                self.after(Duration::ZERO, Action::ClientTimer { client: id });
            }
            if reconnect {
                self.after(
                    Duration::ZERO,
                    Action::AttemptFailed {
                        client: id,
                        attempt,
                    },
                );
            }
            self.flush(id);
        }
    }

    /// Nothing passes between a process and the servers for a while, or only one way.
    pub(super) fn partition(&mut self, process: ProcessId, way: Way, duration: Duration) {
        let until = self.now + duration;
        self.trace(TraceKind::Fault, Some(process), 0, || {
            format!("cut off from all servers, {way:?}, for {duration:?}")
        });
        let found = &mut self.processes[process];
        if way != Way::Down {
            found.mute_until = found.mute_until.max(until);
        }
        if way != Way::Up {
            found.deaf_until = found.deaf_until.max(until);
        }
    }

    /// Breaks a connection under whatever is in flight on it: what has been sent may or may not
    /// still arrive.
    pub(super) fn cut(&mut self, connection: ConnectionId) {
        let arrives = self.rng.bool();
        let Some(found) = self.connections.get_mut(&connection) else {
            return;
        };
        let client = found.client;
        found.down_broken = true;
        if arrives {
            // Only the way back is gone: what the client has sent is still under way.
            self.trace_client(TraceKind::Fault, client, || {
                "the connection is cut".to_owned()
            });
            let asleep = self
                .clients
                .get(&client)
                .is_some_and(|it| self.processes[it.process].is_still());
            if asleep {
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.held_down.push_back(Downward::Close);
                }
            } else if self
                .clients
                .get(&client)
                .is_some_and(|it| it.connection == Some(connection))
            {
                self.disconnect(client, "the connection was cut");
            }
        } else {
            found.up_broken = true;
            self.trace_client(TraceKind::Fault, client, || {
                "the connection is cut, with what was under way".to_owned()
            });
            self.break_connection(connection, "the connection was cut");
        }
    }

    pub(super) fn connection_of(&self, id: ClientId) -> Option<ConnectionId> {
        self.clients.get(&id)?.connection
    }
}
