//! The world of a simulation: its servers, its processes and their clients.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use zookeeper_recipes_core::ensemble::SessionId;

use super::process::{Clock, Process, ProcessId};
use super::turns::Turns;
use crate::chance::fault::Fault;
use crate::engine::kernel::{Agenda, Kernel};
use crate::options::SimulationOptions;
use crate::record::trace::TraceKind;
use crate::server::state::Servers;
use crate::wire::message::Upward;
use crate::wire::network::{ConnectionId, Peer, Port};

#[derive(Debug)]
pub(crate) enum Action {
    /// A process wakes, unless it has been put to sleep for another time.
    Wake(ProcessId, Duration),
    Unblock(ProcessId, Duration),
    /// The dice decide which faults happen.
    RollDice,
}

pub(crate) struct World {
    pub(crate) servers: Servers,
    pub(crate) processes: Vec<Process>,
    pub(crate) turns: Turns,
    /// The clients' ends of the connections.
    pub(crate) peers: BTreeMap<ConnectionId, Arc<dyn Peer>>,
    /// The ports that clients over TCP connect to, by server.
    pub(crate) ports: BTreeMap<usize, Weak<dyn Port>>,
    pub(crate) agenda: Agenda<Action>,
    /// The faults that wait for their request.
    pub(crate) faults: Vec<Fault>,
    pub(crate) dice_armed: bool,
}

impl World {
    pub(crate) fn new(options: SimulationOptions) -> World {
        World {
            servers: Servers::new(options),
            processes: Vec::new(),
            turns: Turns::default(),
            peers: BTreeMap::new(),
            ports: BTreeMap::new(),
            agenda: Agenda::new(),
            faults: Vec::new(),
            dice_armed: false,
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.servers.kernel.now
    }

    pub(crate) fn kernel(&mut self) -> &mut Kernel {
        &mut self.servers.kernel
    }

    pub(crate) fn schedule(&mut self, at: Duration, action: Action) {
        self.agenda.schedule(&mut self.servers.kernel, at, action);
    }

    pub(crate) fn after(&mut self, delay: Duration, action: Action) {
        self.schedule(self.now() + delay, action);
    }

    /// The process of this name that lives, or a new one.
    pub(crate) fn process(&mut self, name: &str) -> ProcessId {
        let hosts = &self.servers.network.hosts;
        if let Some(found) = self
            .processes
            .iter()
            .zip(hosts)
            .position(|(process, host)| host.name == name && !process.is_dead())
        {
            return found;
        }
        let mut clock = Clock::default();
        if self.servers.options.clock_drift > 0 {
            let most = self.servers.options.clock_drift as i32;
            clock.drift = self.kernel().rng.i32(-most..=most);
            clock.begins_at = self.kernel().draw_up_to(Duration::from_secs(1_000_000));
        }
        self.processes.push(Process {
            clock,
            ..Process::default()
        });
        self.servers.network.add_host(name)
    }

    pub(crate) fn name_of(&self, process: ProcessId) -> &str {
        &self.servers.network.hosts[process].name
    }

    /// The connections of a process, in the order in which they were opened.
    pub(crate) fn connections_of(&self, process: ProcessId) -> Vec<ConnectionId> {
        let connections = self.servers.network.connections.iter();
        connections
            .filter(|(_, connection)| connection.host == process && connection.client_open)
            .map(|(id, _)| *id)
            .collect()
    }

    /// The connection on which a session is served.
    pub(crate) fn connection_of_session(&self, session: SessionId) -> Option<ConnectionId> {
        let mut peers = self.peers.keys().copied();
        peers.find(|id| self.servers.session_on(*id) == session.0)
    }

    pub(super) fn send_up(&mut self, id: ConnectionId, message: Upward, extra: Duration) {
        let extra = extra + self.servers.path_delay(id);
        let Servers {
            kernel, network, ..
        } = &mut self.servers;
        network.send_up(kernel, id, message, extra);
    }

    pub(super) fn trace_process(
        &mut self,
        kind: TraceKind,
        process: ProcessId,
        text: impl FnOnce() -> String,
    ) {
        let Servers {
            kernel, network, ..
        } = &mut self.servers;
        kernel.trace(kind, Some(&network.hosts[process].name), 0, text);
    }

    pub(crate) fn trace_connection(
        &mut self,
        kind: TraceKind,
        id: ConnectionId,
        text: impl FnOnce() -> String,
    ) {
        let session = self.servers.session_on(id);
        let Servers {
            kernel, network, ..
        } = &mut self.servers;
        let connection = network.connections.get(&id);
        let name = connection.map(|connection| network.hosts[connection.host].name.as_str());
        kernel.trace(kind, name, session, text);
    }
}

impl fmt::Debug for World {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("World")
            .field("now", &self.now())
            .field("peers", &self.peers.len())
            .field("servers", &self.servers.members.len())
            .finish_non_exhaustive()
    }
}
