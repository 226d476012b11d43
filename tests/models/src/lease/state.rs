//! What the servers and the client know at a moment.

use super::{Age, Contact};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Connection {
    None,
    /// A member that reaches no leader: answers on their way arrive, and nothing else comes.
    Silent,
    /// The isolated leader, or a follower that was cut off with it.
    Isolated,
    Leader,
    Follower {
        /// The leader's last ping to it.
        since_ping: Age,
        /// Pings on their way to it.
        pings: u8,
        /// It has heard of the session since it last answered a ping.
        heard: bool,
    },
    /// An observer behind an observer master, which is a follower.
    Observer {
        /// The observer master's last ping to it.
        since_ping: Age,
        /// It has heard of the session since it last answered a ping.
        heard: bool,
        /// The leader's last ping to the observer master.
        since_leader_ping: Age,
        /// The observer master has heard of the session since it last answered a ping.
        passed_on: bool,
    },
}

/// Whether the client goes by its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proven {
    /// Not before the proof of the reconnect has been answered.
    No,
    /// The answer is on its way.
    ProofServed,
    Yes,
}

/// A moment of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The last touch at the leader that has a quorum; `None` if there is no such leader.
    pub touched: Option<Age>,
    /// Since when a leader has been cut off from its followers, and still answers.
    pub isolated: Option<Age>,
    pub connection: Connection,
    /// Whether the client goes by its connection.
    pub proven: Proven,
    /// The contact that the client's lease counts from, or may soon.
    pub contact: Contact,
}
