//! What is unusual about a queue.

use std::collections::HashMap;
use std::fmt;

use zookeeper_recipes_core::SessionId;

use crate::kind::{QueueKind, may_pass_unseen};
use crate::queue::QueueStatus;
use crate::standing::Standing;

/// A queue has used this many percent of its sequence numbers when it is marked.
const NEAR_THE_END: u32 = 90;

/// Something unusual about a queue, which an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark {
    /// So many contenders belong to no session: they remain until somebody deletes them.
    Persistent(usize),
    /// Contenders of several recipes are here, and do not see each other.
    Mixed,
    /// Contenders with kazoo's names are beside those of other clients, which may not see each other.
    ///
    /// A lock of kazoo counts the others only if it has the `extra_lock_patterns` for them, which no
    /// znode records. Curator orders kazoo's names by their random digits. So two may hold, although
    /// one is shown to wait.
    KazooBesideOthers,
    /// So many znodes here are no contenders.
    Foreign(usize),
    /// One session has several places in this queue. The session with the most is named.
    ///
    /// Tasks of one process may wait independently. A task that waits behind its own hold deadlocks.
    SharedSession {
        /// The session.
        session_id: SessionId,
        /// How many places it has.
        places: usize,
    },
    /// The queue has used so many percent of its sequence numbers.
    ///
    /// Contenders of other clients may hold out of turn when no number is left.
    NumbersUsed(u32),
    /// So many contenders may not be read. They count as contenders without an owner.
    Unread(usize),
    /// The number of permits is not recorded, so the holders are unknown.
    NoNumber,
    /// The number of permits was changed: no znode records which of the older contenders hold.
    NumberChanged,
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mark::Persistent(number) => write!(formatter, "{number} persistent"),
            Mark::Mixed => write!(formatter, "several recipes"),
            Mark::KazooBesideOthers => write!(formatter, "kazoo may not see the others"),
            Mark::Foreign(number) => write!(formatter, "{number} foreign"),
            Mark::SharedSession { session_id, places } => {
                write!(formatter, "{places} places of {session_id}")
            }
            Mark::NumbersUsed(percent) => write!(formatter, "{percent} % of its numbers used"),
            Mark::Unread(number) => write!(formatter, "{number} unreadable"),
            Mark::NoNumber => write!(formatter, "number of permits unknown"),
            Mark::NumberChanged => write!(formatter, "number of permits changed"),
        }
    }
}

impl QueueStatus {
    /// What is unusual about the queue.
    pub fn marks(&self) -> Vec<Mark> {
        let sessions = (0..self.len()).filter_map(|place| self.session(place));
        let persistent = sessions.clone().filter(|session| *session == 0).count();
        let mut standings = (0..self.len()).map(|place| self.standing(place));
        let is_numbered = self.kind() == QueueKind::Semaphore && self.permits().is_some();
        let unknown = is_numbered && standings.any(|it| it == Standing::Unknown);
        let has_no_number = match self.kind() {
            QueueKind::Semaphore => self.permits().is_none(),
            kind => kind == QueueKind::CuratorSemaphore,
        };
        let (foreign, unread, used) = (self.foreign().len(), self.unread(), self.numbers_used());
        [
            (persistent > 0).then_some(Mark::Persistent(persistent)),
            self.is_mixed().then_some(Mark::Mixed),
            may_pass_unseen(self.ordered()).then_some(Mark::KazooBesideOthers),
            (foreign > 0).then_some(Mark::Foreign(foreign)),
            // The members of a group have names of their own.
            self.shared_session().filter(|_| !self.ordered().is_empty()),
            (used >= NEAR_THE_END).then_some(Mark::NumbersUsed(used)),
            (unread > 0).then_some(Mark::Unread(unread)),
            has_no_number.then_some(Mark::NoNumber),
            unknown.then_some(Mark::NumberChanged),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// How many percent of the sequence numbers the last contender shows as used.
    fn numbers_used(&self) -> u32 {
        let last = self.ordered().iter().map(|it| it.sequence().get()).max();
        // Negative numbers come after the last one.
        let is_beyond = self.ordered().iter().any(|it| it.sequence().get() < 0);
        let used = last.map_or(0, |last| i64::from(last) * 100 / i64::from(i32::MAX));
        if is_beyond {
            100
        } else {
            u32::try_from(used).unwrap_or(100)
        }
    }

    fn shared_session(&self) -> Option<Mark> {
        let mut places: HashMap<i64, usize> = HashMap::new();
        for session in (0..self.len()).filter_map(|place| self.session(place)) {
            *places.entry(session).or_default() += 1;
        }
        places.remove(&0);
        let most = places
            .into_iter()
            .max_by_key(|&(session, places)| (places, session))?;
        let (session, places) = most;
        (places > 1).then_some(Mark::SharedSession {
            session_id: SessionId(session),
            places,
        })
    }
}
