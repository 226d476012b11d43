//! The network between clients and servers: it delays, breaks, and is cut, but never reorders.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::message::{Downward, Upward};
use super::names::Names;
use crate::chance::fault::Way;
use crate::engine::kernel::{Agenda, Kernel};
use crate::record::request_kind::RequestKind;

/// A connection between the client of a session and a server.
pub(crate) type ConnectionId = u64;

/// A machine that clients run on: the place of its link in the network.
pub(crate) type HostId = usize;

/// A connection, as the network has it.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) host: HostId,
    pub(crate) server: usize,
    /// The address of the client.
    pub(crate) address: String,
    /// True if the client has sent its first frame.
    pub(crate) greeted: bool,
    pub(crate) client_open: bool,
    pub(crate) server_open: bool,
    /// When the last message to the server arrives.
    pub(crate) last_up: Duration,
    /// When the last message to the client arrives.
    pub(crate) last_down: Duration,
    /// Messages that are sent to the server from now on do not arrive.
    pub(crate) up_broken: bool,
    /// Messages on their way to the server do not arrive either.
    pub(crate) deaf: bool,
    /// Messages that are sent to the client from now on do not arrive.
    pub(crate) down_broken: bool,
    /// True if the client has been granted its session.
    pub(crate) granted: bool,
    /// The requests whose replies have not come, oldest first.
    pub(crate) asked: VecDeque<RequestKind>,
}

/// The client's end of a connection.
pub(crate) trait Peer: fmt::Debug + Send + Sync {
    /// Gets what a server has sent.
    fn hear(&self, message: Downward);

    /// The connection is broken.
    fn hang_up(&self);
}

/// The port of a server.
pub(crate) trait Port: fmt::Debug + Send + Sync {
    /// Refuses connections from now on.
    fn close(&self);

    /// Takes connections again.
    fn open(&self);
}

/// A machine that clients run on, and its link to the servers.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// No message that it sends arrives before this time.
    pub(crate) mute_until: Duration,
    /// No message to it arrives before this time.
    pub(crate) deaf_until: Duration,
}

/// What the network does at a time.
#[derive(Debug)]
pub(crate) enum Delivery {
    ToServer(ConnectionId, Upward),
    ToClient(ConnectionId, Downward),
    /// A connection breaks for both its ends, for this cause.
    Break(ConnectionId, &'static str),
}

#[derive(Debug)]
pub(crate) struct Network {
    delay: RangeInclusive<Duration>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) names: Names,
    /// The servers that are cut off from all clients for good.
    unheard: BTreeMap<usize, Way>,
    pub(crate) connections: BTreeMap<ConnectionId, Connection>,
    next_connection: ConnectionId,
    pub(crate) agenda: Agenda<Delivery>,
}

impl Network {
    pub(crate) fn new(delay: RangeInclusive<Duration>, names: Names) -> Network {
        Network {
            delay,
            hosts: Vec::new(),
            names,
            unheard: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_connection: 1,
            agenda: Agenda::new(),
        }
    }

    pub(crate) fn add_host(&mut self, name: &str) -> HostId {
        self.hosts.push(Host {
            name: name.to_owned(),
            mute_until: Duration::ZERO,
            deaf_until: Duration::ZERO,
        });
        self.hosts.len() - 1
    }

    /// How long the next message takes.
    pub(crate) fn draw_delay(&self, kernel: &mut Kernel) -> Duration {
        kernel.draw(&self.delay)
    }

    /// Connects a client at this address to a server.
    pub(crate) fn connect(&mut self, host: HostId, server: usize, address: String) -> ConnectionId {
        let id = self.next_connection;
        self.next_connection += 1;
        let connection = Connection {
            host,
            server,
            address,
            client_open: true,
            server_open: true,
            ..Connection::default()
        };
        self.connections.insert(id, connection);
        id
    }

    pub(crate) fn server_of(&self, connection: ConnectionId) -> Option<usize> {
        Some(self.connections.get(&connection)?.server)
    }

    /// The connections to a server, in the order in which they were made.
    pub(crate) fn connections_to(&self, server: usize) -> Vec<ConnectionId> {
        self.connections
            .iter()
            .filter(|(_, it)| it.server == server)
            .map(|(id, _)| *id)
            .collect()
    }

    pub(crate) fn send_up(
        &mut self,
        kernel: &mut Kernel,
        id: ConnectionId,
        message: Upward,
        extra: Duration,
    ) {
        let delay = self.draw_delay(kernel) + extra;
        let found = self.connections.get_mut(&id);
        let Some(connection) = found.filter(|it| !it.up_broken) else {
            return;
        };
        if matches!(
            self.unheard.get(&connection.server),
            Some(Way::Both | Way::Up)
        ) {
            return;
        }
        let reachable = self.hosts[connection.host].mute_until;
        let at = (kernel.now + delay).max(connection.last_up).max(reachable);
        connection.last_up = at;
        self.agenda
            .schedule(kernel, at, Delivery::ToServer(id, message));
    }

    pub(crate) fn send_down(
        &mut self,
        kernel: &mut Kernel,
        id: ConnectionId,
        message: Downward,
        extra: Duration,
    ) {
        let delay = self.draw_delay(kernel) + extra;
        let found = self.connections.get_mut(&id);
        let Some(connection) = found.filter(|it| it.client_open && !it.down_broken) else {
            return;
        };
        if matches!(
            self.unheard.get(&connection.server),
            Some(Way::Both | Way::Down)
        ) {
            return;
        }
        let reachable = self.hosts[connection.host].deaf_until;
        let at = (kernel.now + delay)
            .max(connection.last_down)
            .max(reachable);
        connection.last_down = at;
        self.agenda
            .schedule(kernel, at, Delivery::ToClient(id, message));
    }

    pub(crate) fn break_at(
        &mut self,
        kernel: &mut Kernel,
        at: Duration,
        connection: ConnectionId,
        cause: &'static str,
    ) {
        let delivery = Delivery::Break(connection, cause);
        self.agenda.schedule(kernel, at, delivery);
    }

    /// Forgets a connection that both ends have closed.
    pub(crate) fn forget_closed(&mut self, id: ConnectionId) {
        if self
            .connections
            .get(&id)
            .is_some_and(|it| !it.client_open && !it.server_open)
        {
            self.connections.remove(&id);
        }
    }

    /// Cuts a host off from the servers until this time, one way or both.
    pub(crate) fn cut_off(&mut self, host: HostId, way: Way, until: Duration) {
        let host = &mut self.hosts[host];
        if way != Way::Down {
            host.mute_until = host.mute_until.max(until);
        }
        if way != Way::Up {
            host.deaf_until = host.deaf_until.max(until);
        }
    }

    /// Cuts a server off from all clients for good, one way or both.
    pub(crate) fn cut_off_server(&mut self, server: usize, way: Way) {
        self.unheard.insert(server, way);
    }
}
