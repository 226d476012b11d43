//! What the servers have to do at a time.

use super::peer_message::{FromLeader, ToLeader};
use crate::wire::connection::ConnectionId;
use crate::wire::message::Upward;

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
