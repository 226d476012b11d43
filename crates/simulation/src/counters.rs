//! What a simulation has counted.

use std::collections::BTreeMap;

/// The kinds of request that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestKind {
    /// A create.
    Create,
    /// A delete.
    Delete,
    /// A list of children, with or without a watch.
    List,
    /// A read of data, with or without a watch.
    Get,
    /// An exists.
    Exists,
    /// A transaction of several writes.
    Transact,
    /// A read of several znodes.
    GetEach,
    /// A sync.
    Sync,
    /// A watch taken off.
    RemoveWatch,
    /// The watches of a session set anew after a reconnect.
    SetWatches,
    /// A sign of life of an idle client.
    Ping,
    /// The end of a session, asked for by its client.
    CloseSession,
}

impl RequestKind {
    /// Whether a caller of the seam asked for this, and not the client by itself.
    pub fn is_asked_for(self) -> bool {
        !matches!(
            self,
            RequestKind::RemoveWatch
                | RequestKind::SetWatches
                | RequestKind::Ping
                | RequestKind::CloseSession
        )
    }

    /// Whether it takes the leader to answer this.
    pub(super) fn goes_through_the_leader(self) -> bool {
        self.is_write() || matches!(self, RequestKind::Sync | RequestKind::CloseSession)
    }

    /// Whether this goes through the leader.
    pub fn is_write(self) -> bool {
        matches!(
            self,
            RequestKind::Create | RequestKind::Delete | RequestKind::Transact
        )
    }
}

/// What has been counted since the simulation began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub(super) requests: BTreeMap<RequestKind, u64>,
    pub(super) requests_of: BTreeMap<String, BTreeMap<RequestKind, u64>>,
    pub(super) notifications: u64,
    pub(super) notifications_of: BTreeMap<String, u64>,
    pub(super) transactions: u64,
    pub(super) watches: usize,
}

impl Counters {
    /// How many requests of this kind were sent.
    pub fn requests(&self, kind: RequestKind) -> u64 {
        self.requests.get(&kind).copied().unwrap_or(0)
    }

    /// How many requests were sent that somebody had asked for.
    pub fn requests_asked_for(&self) -> u64 {
        self.requests
            .iter()
            .filter(|(kind, _)| kind.is_asked_for())
            .map(|(_, count)| count)
            .sum()
    }

    /// How many requests that somebody had asked for were sent by this process.
    pub fn requests_of(&self, process: &str) -> u64 {
        self.requests_of.get(process).map_or(0, |requests| {
            requests
                .iter()
                .filter(|(kind, _)| kind.is_asked_for())
                .map(|(_, count)| count)
                .sum()
        })
    }

    /// How many watch notifications the servers sent.
    pub fn notifications(&self) -> u64 {
        self.notifications
    }

    /// How many watch notifications the servers sent to this process.
    pub fn notifications_to(&self, process: &str) -> u64 {
        self.notifications_of.get(process).copied().unwrap_or(0)
    }

    /// How many transactions were committed, refused ones left out.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// How many watches stand on the servers now.
    pub fn watches(&self) -> usize {
        self.watches
    }
}
