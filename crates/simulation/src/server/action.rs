//! What the servers have to do at a time, and what members say to each other.

use crate::wire::message::{Greeting, Upward};
use crate::wire::network::ConnectionId;
use crate::wire::request::Request;

#[derive(Debug)]
pub(crate) enum Action {
    /// A message of a client arrives.
    Arrive {
        connection: ConnectionId,
        message: Upward,
    },
    ToLeader {
        term: u64,
        server: usize,
        message: ToLeader,
    },
    FromLeader {
        term: u64,
        server: usize,
        message: FromLeader,
    },
    Commit {
        index: u64,
    },
    /// The leader looks for sessions that it has not heard of for too long.
    ExpireSessions,
    /// The followers tell the leader which sessions they have heard of.
    TouchSessions,
    ReapContainers,
    /// Commits that have stalled go on.
    EndStall,
    /// A paused server goes on.
    Resume {
        server: usize,
    },
    /// A follower has been cut off for so long that it stops serving.
    GiveUpLeader {
        server: usize,
        cut: u64,
    },
    RejoinLeader {
        server: usize,
        cut: u64,
    },
    Elected {
        term: u64,
        server: usize,
    },
    /// The followers of an isolated leader have heard nothing of it for too long.
    FollowersGiveUp {
        cut: u64,
    },
    /// An isolated leader notices that it is alone.
    StepDown {
        cut: u64,
    },
    EndIsolation {
        server: usize,
        cut: u64,
    },
}

/// What a follower tells its leader.
#[derive(Debug)]
pub(crate) enum ToLeader {
    Open {
        connection: ConnectionId,
        greeting: Greeting,
    },
    Revalidate {
        connection: ConnectionId,
        session: i64,
        greeting: Greeting,
    },
    Write {
        connection: ConnectionId,
        id: u64,
        session: i64,
        request: Request,
    },
    Sync {
        connection: ConnectionId,
        id: u64,
    },
    Close {
        connection: ConnectionId,
        id: u64,
        session: i64,
    },
    Touched(Vec<i64>),
}

/// What the leader tells a follower, and itself.
#[derive(Debug)]
pub(crate) enum FromLeader {
    Commit {
        index: u64,
    },
    Synced {
        connection: ConnectionId,
        id: u64,
    },
    Revalidated {
        connection: ConnectionId,
        session: i64,
        valid: bool,
    },
}
