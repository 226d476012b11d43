//! The counts of a proxy.

use std::collections::BTreeMap;

use super::operation::Operation;

/// The traffic of a [`Proxy`](super::Proxy), lost requests and replies included.
///
/// Bytes include the four of each frame's length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub(super) connections: u64,
    pub(super) bytes_to_server: u64,
    pub(super) bytes_to_client: u64,
    pub(super) round_trips: u64,
    pub(super) tallies: BTreeMap<Operation, Tally>,
}

/// The counts of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Requests that clients have sent.
    pub requests: u64,
    /// The bytes of these.
    pub request_bytes: u64,
    /// Replies that the server has sent.
    pub replies: u64,
    /// The bytes of these.
    pub reply_bytes: u64,
}

impl Counters {
    /// How many connections clients have made.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// What clients have sent, in bytes.
    pub fn bytes_to_server(&self) -> u64 {
        self.bytes_to_server
    }

    /// What servers have sent, in bytes.
    pub fn bytes_to_client(&self) -> u64 {
        self.bytes_to_client
    }

    /// How often clients have sent something when the server had sent last on that connection, or
    /// nothing had passed on it. Pings and their answers are left out.
    ///
    /// Requests that a client sends together are one round trip.
    pub fn round_trips(&self) -> u64 {
        self.round_trips
    }

    /// The counts of this operation.
    pub fn of(&self, operation: Operation) -> Tally {
        self.tallies.get(&operation).copied().unwrap_or_default()
    }

    /// How many events of watches the server has sent.
    pub fn notifications(&self) -> u64 {
        self.of(Operation::Notification).replies
    }

    /// The requests of clients, without pings: the number of pings depends on time only.
    pub fn requests(&self) -> u64 {
        self.tallies
            .iter()
            .filter(|(operation, _)| **operation != Operation::Ping)
            .map(|(_, tally)| tally.requests)
            .sum()
    }

    /// The counts since `earlier`, which is from the same proxy.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        let tallies = self.tallies.iter().map(|(operation, now)| {
            let then = earlier.of(*operation);
            let tally = Tally {
                requests: now.requests.saturating_sub(then.requests),
                request_bytes: now.request_bytes.saturating_sub(then.request_bytes),
                replies: now.replies.saturating_sub(then.replies),
                reply_bytes: now.reply_bytes.saturating_sub(then.reply_bytes),
            };
            (*operation, tally)
        });
        Counters {
            connections: self.connections.saturating_sub(earlier.connections),
            bytes_to_server: self.bytes_to_server.saturating_sub(earlier.bytes_to_server),
            bytes_to_client: self.bytes_to_client.saturating_sub(earlier.bytes_to_client),
            round_trips: self.round_trips.saturating_sub(earlier.round_trips),
            tallies: tallies.collect(),
        }
    }

    pub(super) fn request(&mut self, operation: Operation, bytes: usize) {
        let tally = self.tallies.entry(operation).or_default();
        tally.requests += 1;
        tally.request_bytes += bytes as u64;
    }

    pub(super) fn reply(&mut self, operation: Operation, bytes: usize) {
        let tally = self.tallies.entry(operation).or_default();
        tally.replies += 1;
        tally.reply_bytes += bytes as u64;
    }
}
