//! Leaders and candidates, as the server shows them.

use std::time::SystemTime;

use zookeeper_recipes_core::{FencingToken, QueueEntry, SessionId, Stat};

use crate::notice::Notice;
use crate::rule::{candidate_named, is_standby};

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
    /// Not when it began to lead: ZooKeeper does not record that. A
    /// [`watch`](crate::LeaderElection::watch_leader) or an
    /// [observer](crate::LeaderElection::observe) learns it within the time of a round trip.
    /// [`leader`](crate::LeaderElection::leader) learns it when it is called.
    pub since: SystemTime,
    /// The text that it last [proclaimed](crate::Term::proclaim).
    pub proclaimed: Option<String>,
}

/// A candidate of an election, the leader included.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Participant {
    /// The id that it campaigns with, read as [`Leader::id`] is.
    pub id: String,
    /// The fencing token of its leadership, present or future. It has a new one after a step back.
    pub fencing_token: FencingToken,
    /// The session that its znode belongs to. The candidacy ends with it.
    pub session_id: SessionId,
    /// Whether it leads: it is the first candidate.
    pub leads: bool,
    /// Whether it is on [standby](crate::LeaderElection::standby).
    pub standby: bool,
}

impl Leader {
    /// The leader with this znode, in a directory with this data.
    pub(crate) fn new((data, stat): (&[u8], &Stat), directory_data: &[u8]) -> Leader {
        let fencing_token = FencingToken::from(stat.czxid);
        let notice = Notice::read(directory_data);
        let proclaimed = notice
            .as_ref()
            .and_then(|it| it.proclaimed_by(fencing_token));
        Leader {
            id: id_in(data),
            fencing_token,
            proclaimed: proclaimed.map(str::to_owned),
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
            standby: candidate_named(&entry.name).is_some_and(|it| is_standby(&it)),
        }
    }
}

fn id_in(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}
