//! Who leads, as the server shows it.

use std::time::SystemTime;

use zookeeper_recipes_core::{FencingToken, Refusal, SessionId, Stat};

use crate::directory_data::DirectoryData;

/// The leader of an election, as the server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The id that the leader campaigned with.
    ///
    /// If the znode's data is not UTF-8, each bad sequence reads as U+FFFD.
    pub id: String,
    /// The leader's fencing token, newer than that of every leader before.
    pub fencing_token: FencingToken,
    /// The session that the leader's znode belongs to. The leadership ends with the session.
    pub session_id: SessionId,
    /// When the leader began to campaign, by the server's clock.
    pub candidate_since: SystemTime,
    /// When this process learned who leads, by the clock of this process.
    ///
    /// ZooKeeper does not record when the leadership began. A
    /// [watch](crate::LeaderElection::watch_leader) learns of a leader within the time of a round
    /// trip. [`leader`](crate::LeaderElection::leader) learns of the leader when it is called.
    pub since: SystemTime,
    /// The text that the leader [proclaimed](crate::Term::proclaim) last.
    pub proclaimed: Option<String>,
}

/// Who leads, as far as a [watch](crate::LeaderElection::watch_leader) knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderState {
    /// No server has answered yet.
    Unknown,
    /// The server refuses the reads, for example without the permission to read.
    Refused(Refusal),
    /// Nobody leads.
    Nobody,
    /// This candidate leads.
    Leader(Leader),
}

impl LeaderState {
    /// The leader. `None` if nobody leads, or if it is not known who leads.
    pub fn leader(&self) -> Option<&Leader> {
        match self {
            LeaderState::Leader(leader) => Some(leader),
            LeaderState::Unknown | LeaderState::Refused(_) | LeaderState::Nobody => None,
        }
    }
}

impl Leader {
    /// The leader with this znode, in a directory with this data.
    pub(crate) fn new((data, stat): (&[u8], &Stat), directory_data: &[u8]) -> Leader {
        let fencing_token = FencingToken::from(stat.czxid);
        let directory_data = DirectoryData::parse(directory_data);
        let proclaimed = directory_data
            .as_ref()
            .and_then(|data| data.proclaimed_by(fencing_token));
        Leader {
            id: String::from_utf8_lossy(data).into_owned(),
            fencing_token,
            proclaimed: proclaimed.map(str::to_owned),
            session_id: SessionId(stat.ephemeral_owner),
            candidate_since: stat.created(),
            since: SystemTime::now(),
        }
    }
}
