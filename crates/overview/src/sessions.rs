//! In how many queues each session is, and in how many it waits.

use std::collections::HashMap;
use std::sync::Arc;

use crate::queue::QueueStatus;
use crate::standing::Standing;

/// The sessions of many queues.
///
/// A session is part of a circle only if it waits in one queue and has a contender in another one.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    counts: HashMap<i64, Count>,
    /// How many of them wait in a queue and are in another one.
    crossing: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    queues: u32,
    waits: u32,
}

impl Count {
    fn is_crossing(self) -> bool {
        self.queues > 1 && self.waits > 0
    }
}

impl Sessions {
    pub(crate) fn of<'q>(queues: impl IntoIterator<Item = &'q Arc<QueueStatus>>) -> Sessions {
        let mut sessions = Sessions::default();
        for queue in queues {
            sessions.add(queue);
        }
        sessions
    }

    pub(crate) fn add(&mut self, queue: &QueueStatus) {
        for (session, waits) in of_queue(queue) {
            let count = self.counts.entry(session).or_default();
            let was_crossing = count.is_crossing();
            count.queues += 1;
            count.waits += u32::from(waits);
            self.crossing += usize::from(!was_crossing && count.is_crossing());
        }
    }

    pub(crate) fn remove(&mut self, queue: &QueueStatus) {
        for (session, waits) in of_queue(queue) {
            let Some(count) = self.counts.get_mut(&session) else {
                continue;
            };
            let was_crossing = count.is_crossing();
            count.queues -= 1;
            count.waits -= u32::from(waits);
            self.crossing -= usize::from(was_crossing && !count.is_crossing());
            if count.queues == 0 {
                self.counts.remove(&session);
            }
        }
    }

    /// The queues of sessions that wait in one queue and are in another one.
    ///
    /// No other contender is part of a circle, nor decides whether one of these is stuck.
    pub(crate) fn crossed(&self, queues: &[Arc<QueueStatus>]) -> Vec<Arc<QueueStatus>> {
        let crossed = queues.iter().filter(|queue| self.is_crossed(queue));
        crossed.cloned().collect()
    }

    /// True if a session of this queue waits in one queue and is in another one.
    pub(crate) fn is_crossed(&self, queue: &QueueStatus) -> bool {
        let is_crossing = |session: i64| {
            let count = self.counts.get(&session);
            count.is_some_and(|count| count.is_crossing())
        };
        let mut sessions = (0..queue.len()).filter_map(|place| queue.session(place));
        self.crossing > 0 && sessions.any(is_crossing)
    }
}

/// The sessions of a queue, each once, and whether they wait.
fn of_queue(queue: &QueueStatus) -> Vec<(i64, bool)> {
    let may_wait = queue.may_wait();
    let waits = |place| may_wait && matches!(queue.standing(place), Standing::Waits { .. });
    let sessions = (0..queue.len()).filter_map(|place| {
        let session = queue.session(place).filter(|session| *session != 0)?;
        Some((session, waits(place)))
    });
    let mut sessions: Vec<(i64, bool)> = sessions.collect();
    sessions.sort_unstable_by_key(|(session, waits)| (*session, !waits));
    sessions.dedup_by_key(|(session, _)| *session);
    sessions
}
