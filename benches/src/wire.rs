//! The traffic between sessions and their servers, counted on the wire.

use std::io;
use std::ops::AddAssign;
use std::time::Duration;

use zookeeper_recipes_testkit::Server;
use zookeeper_recipes_testkit::proxy::{Counters, Operation, Proxy};

/// Proxies that count the traffic between servers and the clients that connect through them.
#[derive(Debug)]
pub struct Wire {
    proxies: Vec<Proxy>,
}

/// The counts at one moment, of each proxy.
#[derive(Clone, Debug)]
pub struct Reading {
    counters: Vec<Counters>,
}

/// The traffic between two readings: requests, their replies, notifications.
///
/// The pings and probes that a session sends by itself, as time passes, are not counted, but for
/// the round trip of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub requests: u64,
    /// The requests that write: creates, deletes, writes of data, and transactions.
    pub writes: u64,
    pub notifications: u64,
    /// Bytes in both directions, the four of each frame's length included, TCP's headers not.
    pub bytes: u64,
    /// The part of the bytes that are lists of children, and requests for them.
    pub list_bytes: u64,
    /// How often a client has sent something after an answer, on the same connection.
    pub round_trips: u64,
}

/// The requests that a session sends by itself: pings, and a sync as its probe.
///
/// A recipe sends a sync only after its connection has been lost.
const SENT_BY_ITSELF: [Operation; 2] = [Operation::Ping, Operation::Sync];

const WRITES: [Operation; 4] = [
    Operation::Create,
    Operation::Delete,
    Operation::SetData,
    Operation::Multi,
];

impl Wire {
    pub async fn to(server: &Server) -> io::Result<Wire> {
        Wire::to_all([server]).await
    }

    /// Starts a proxy for each of these servers.
    pub async fn to_all(servers: impl IntoIterator<Item = &Server>) -> io::Result<Wire> {
        let mut proxies = Vec::new();
        for server in servers {
            proxies.push(Proxy::start(server.connect_string()).await?);
        }
        Ok(Wire { proxies })
    }

    /// From now on, the wire has this round trip.
    pub fn set_round_trip(&self, round_trip: Duration) {
        self.proxies.iter().for_each(|it| it.delay(round_trip / 2));
    }

    pub fn connect_string(&self) -> String {
        let addresses: Vec<String> = self.proxies.iter().map(Proxy::connect_string).collect();
        addresses.join(",")
    }

    /// The counts up to now.
    pub fn read(&self) -> Reading {
        Reading {
            counters: self.proxies.iter().map(Proxy::counters).collect(),
        }
    }
}

impl Reading {
    pub fn until(&self, later: &Reading) -> Traffic {
        let mut traffic = Traffic::default();
        for (earlier, later) in self.counters.iter().zip(&later.counters) {
            traffic += Traffic::of(&later.since(earlier));
        }
        traffic
    }
}

impl Traffic {
    fn of(passed: &Counters) -> Traffic {
        let mut requests = passed.requests();
        let mut bytes = passed.bytes_to_server() + passed.bytes_to_client();
        for operation in SENT_BY_ITSELF {
            let tally = passed.of(operation);
            bytes -= tally.request_bytes + tally.reply_bytes;
            if operation != Operation::Ping {
                requests -= tally.requests;
            }
        }
        let lists = passed.of(Operation::GetChildren);
        Traffic {
            requests,
            writes: WRITES.iter().map(|it| passed.of(*it).requests).sum(),
            notifications: passed.notifications(),
            bytes,
            list_bytes: lists.request_bytes + lists.reply_bytes,
            round_trips: passed.round_trips(),
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.requests += other.requests;
        self.writes += other.writes;
        self.notifications += other.notifications;
        self.bytes += other.bytes;
        self.list_bytes += other.list_bytes;
        self.round_trips += other.round_trips;
    }
}
