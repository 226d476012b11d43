//! What the members of an ensemble say to each other.

use crate::wire::connection::ConnectionId;
use crate::wire::greeting::Greeting;
use crate::wire::request::Request;

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
