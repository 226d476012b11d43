//! The actions of servers, and the messages between members.

use zookeeper_recipes_protocol::{ConnectRequest, RequestBody};

use super::transaction::Origin;
use crate::wire::message::Upward;
use crate::wire::network::ConnectionId;

/// What the servers have to do at a time.
#[derive(Debug)]
pub(crate) enum Action {
    /// A message of a client arrives.
    Arrive(ConnectionId, Upward),
    /// A slow server takes a client's request for a session, in this term.
    Greet(u64, usize, ConnectionId, ConnectRequest),
    /// A message of a member reaches the leader of a term.
    ToLeader(u64, usize, ToLeader),
    /// A message of the leader of a term reaches a member.
    FromLeader(u64, usize, FromLeader),
    Commit {
        index: u64,
    },
    /// The leader looks for sessions that it has not heard of for too long.
    ExpireSessions,
    /// The followers report to the leader which sessions they have heard of.
    TouchSessions,
    ReapContainers,
    /// The ensemble commits again after a stall.
    EndStall,
    /// A paused server runs again.
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

/// A message of a follower to its leader, or of the leader to itself.
#[derive(Debug)]
pub(crate) enum ToLeader {
    /// A client asks for a new session.
    Open(ConnectionId, ConnectRequest),
    /// A client resumes its session.
    Revalidate(ConnectionId, ConnectRequest),
    /// A session writes.
    Write(Origin, i64, RequestBody),
    Sync(Origin),
    /// A client closes this session.
    Close(Origin, i64),
    /// The sessions that the follower has heard of.
    Touched(Vec<i64>),
}

/// A message of the leader to a follower, or to itself.
#[derive(Debug)]
pub(crate) enum FromLeader {
    Commit {
        index: u64,
    },
    Synced(Origin),
    /// The client resumes its session. `None` if the session is over.
    Revalidated(ConnectionId, Option<i64>),
}
