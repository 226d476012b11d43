//! What passes between sessions and their server, counted on the wire.

use std::io;
use std::ops::AddAssign;

use zookeeper_recipes_testkit::Server;
use zookeeper_recipes_testkit::proxy::{Counters, Operation, Proxy};

/// A proxy that counts what passes between a server and those who connect to it through this.
#[derive(Debug)]
pub struct Wire {
    proxy: Proxy,
}

/// What has passed so far.
#[derive(Clone, Debug)]
pub struct Reading {
    counters: Counters,
}

/// What has passed between two readings: requests, their replies, notifications. Not among them is
/// what a session sends by itself, as time passes: pings and probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests.
    pub requests: u64,
    /// Notifications of watches.
    pub notifications: u64,
    /// Bytes in both directions, with the four of each frame's length; without what TCP adds.
    pub bytes: u64,
    /// Of the bytes: those of lists of children, and the requests for them.
    pub list_bytes: u64,
}

/// What a session sends by itself: pings, and a sync as its probe. A recipe sends a sync only after
/// its connection has been lost.
const SENT_BY_ITSELF: [Operation; 2] = [Operation::Ping, Operation::Sync];

impl Wire {
    /// A wire to this server.
    ///
    /// # Errors
    ///
    /// Where no port can be listened on.
    pub async fn to(server: &Server) -> io::Result<Wire> {
        let proxy = Proxy::start(server.connect_string()).await?;
        Ok(Wire { proxy })
    }

    /// Where clients find it.
    pub fn connect_string(&self) -> String {
        self.proxy.connect_string()
    }

    /// What has passed so far.
    pub fn read(&self) -> Reading {
        Reading {
            counters: self.proxy.counters(),
        }
    }
}

impl Reading {
    /// What has passed from this reading until a later one.
    pub fn until(&self, later: &Reading) -> Traffic {
        let passed = later.counters.since(&self.counters);
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
            notifications: passed.notifications(),
            bytes,
            list_bytes: lists.request_bytes + lists.reply_bytes,
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.requests += other.requests;
        self.notifications += other.notifications;
        self.bytes += other.bytes;
        self.list_bytes += other.list_bytes;
    }
}
