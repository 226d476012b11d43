//! Leaders and candidates, as the server shows them.

use std::time::SystemTime;

use zookeeper_recipes_core::{FencingToken, QueueEntry, SessionId, Stat};

/// The leader of an election, as the server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The id that it campaigned with.
    ///
    /// If the znode's data is not UTF-8, each bad sequence reads as U+FFFD.
    pub id: String,
    /// Its fencing token, newer than that of every leader before it.
    pub fencing_token: FencingToken,
    /// The session that its znode belongs to. The leadership ends with it.
    pub session_id: SessionId,
    /// When it began to campaign, by the server's clock.
    pub candidate_since: SystemTime,
    /// When this process learned that it leads, by the clock of this process.
    ///
    /// Not when it began to lead: ZooKeeper does not record that. A [`watch`](crate::LeaderElection::watch_leader)
    /// or an [observer](crate::LeaderElection::observe) learns it within the time of a round trip.
    /// [`leader`](crate::LeaderElection::leader) learns it when it is called.
    pub since: SystemTime,
}

/// A candidate of an election, the leader included.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Participant {
    /// The id that it campaigns with, read as [`Leader::id`] is.
    pub id: String,
    /// The fencing token of its leadership, present or future.
    pub fencing_token: FencingToken,
    /// The session that its znode belongs to. The candidacy ends with it.
    pub session_id: SessionId,
    /// Whether it leads: it is the first candidate.
    pub leads: bool,
}

impl Leader {
    pub(crate) fn new(data: &[u8], stat: &Stat) -> Leader {
        Leader {
            id: id_in(data),
            fencing_token: FencingToken::from(stat.czxid),
            session_id: SessionId(stat.ephemeral_owner),
            candidate_since: stat.created(),
            since: SystemTime::now(),
        }
    }
}

impl Participant {
    pub(crate) fn new(entry: QueueEntry) -> Participant {
        Participant {
            id: id_in(&entry.data),
            fencing_token: entry.fencing_token,
            session_id: entry.session_id,
            leads: entry.position == 0,
        }
    }
}

fn id_in(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}
