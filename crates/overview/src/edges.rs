//! Who blocks whom: the edges between the contenders that cannot go on.
//!
//! A contender that holds is *stuck* if its session is stuck in another queue. A contender that waits is
//! stuck if its rule does not let it hold once all contenders that are not stuck have left. So a
//! waiter for a semaphore is not stuck if one of the holders before it is not. A session that waits in
//! two queues has two tasks: what one of them waits for does not stop the other one.
//!
//! Several contenders of one session in one queue do not wait for each other: they are tasks of one
//! process, which queue up behind each other all the time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::queue::QueueStatus;
use crate::standing::{Before, Standing};

/// The path of a queue, the transactions that created two contenders, and that of its permits.
pub(crate) type EdgeKey = (String, i64, Option<i64>, i64);

/// A stuck contender waits for a contender of another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The index of the queue.
    pub(crate) queue: usize,
    /// The places of the two.
    pub(crate) waiter: usize,
    pub(crate) blocker: usize,
    /// Their sessions.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The transaction that created the waiter.
    pub(crate) czxid: i64,
}

impl Edge {
    /// `None` if the two are of one session, or the rule of the waiter does not count the other one.
    fn of(queue: &QueueStatus, index: usize, waiter: usize, blocker: usize) -> Option<Edge> {
        let edge = Edge {
            queue: index,
            waiter,
            blocker,
            from: queue.session(waiter)?,
            to: queue.session(blocker).filter(|session| *session != 0)?,
            czxid: queue.czxid(waiter)?,
        };
        (edge.from != edge.to && queue.counts(waiter, blocker)).then_some(edge)
    }

    /// What is the same in two looks, if the waiter has waited for the blocker in between.
    pub(crate) fn key(&self, queues: &[Arc<QueueStatus>]) -> EdgeKey {
        let queue = &queues[self.queue];
        let blocker = queue.czxid(self.blocker);
        (
            queue.path().to_owned(),
            self.czxid,
            blocker,
            queue.numbered_at(),
        )
    }
}

/// The edges between the stuck contenders of these queues, and the queues in which contenders wait.
///
/// The latter by their indices. Who waits for nobody there, or for a persistent contender, has no edge.
pub(crate) fn edges(queues: &[Arc<QueueStatus>]) -> (Vec<Edge>, Vec<usize>) {
    let mut stuck = Stuck::new(queues);
    loop {
        let (mut edges, mut progress) = (Vec::new(), false);
        let mut contended = std::mem::take(&mut stuck.contended);
        contended.retain(|index| {
            let (waits, frees) = stuck.settle(*index, &mut edges);
            progress |= frees;
            waits
        });
        stuck.contended = contended;
        if !progress {
            return (edges, stuck.contended);
        }
    }
}

/// The contenders that were not found able to go on.
struct Stuck<'q> {
    queues: &'q [Arc<QueueStatus>],
    /// The queues in which contenders wait, by their indices.
    contended: Vec<usize>,
    /// The stuck waiters, each by its queue and its place.
    waiters: HashSet<(usize, usize)>,
    /// How many of them each session has in each queue.
    waits: HashMap<i64, HashMap<usize, usize>>,
}

impl<'q> Stuck<'q> {
    /// At first each waiter is stuck.
    fn new(queues: &'q [Arc<QueueStatus>]) -> Stuck<'q> {
        let mut stuck = Stuck {
            queues,
            contended: Vec::new(),
            waiters: HashSet::new(),
            waits: HashMap::new(),
        };
        for (index, queue) in queues.iter().enumerate() {
            let before = stuck.waiters.len();
            let places = if queue.may_wait() { queue.len() } else { 0 };
            for place in 0..places {
                let session = queue.session(place).filter(|session| *session != 0);
                let Some(session) = session else { continue };
                if matches!(queue.standing(place), Standing::Waits { .. }) {
                    stuck.waiters.insert((index, place));
                    let waits = stuck.waits.entry(session).or_default();
                    *waits.entry(index).or_default() += 1;
                }
            }
            if stuck.waiters.len() > before {
                stuck.contended.push(index);
            }
        }
        stuck
    }

    /// Lets each waiter of a queue hold that can, and returns if others wait, and if one can hold.
    ///
    /// Adds what the others wait for. In a pass without progress these are the edges.
    fn settle(&mut self, index: usize, edges: &mut Vec<Edge>) -> (bool, bool) {
        let queue = &self.queues[index];
        let (mut waits, mut progress) = (false, false);
        // The contenders that stay, and their places.
        let mut before = Before::new(queue.kind(), queue.permits());
        let mut places: Vec<usize> = Vec::new();
        for place in 0..queue.len() {
            // A contender that may not be read may leave.
            let Some(session) = queue.session(place) else {
                continue;
            };
            let contender = &queue.ordered()[place];
            let mut is_stuck = false;
            if self.waiters.contains(&(index, place)) {
                // Those of its own session do not count.
                match before.standing(contender, Some(session)) {
                    Standing::Waits { first, end } => {
                        is_stuck = true;
                        let [first, end] = [first, end]
                            .map(|end| places.partition_point(|place| *place < end as usize));
                        let blockers = places[first..end].iter();
                        edges.extend(blockers.filter_map(|it| Edge::of(queue, index, place, *it)));
                    }
                    Standing::Holds | Standing::Unknown => {
                        progress = true;
                        self.goes_on(index, place, session);
                    }
                }
            }
            waits |= is_stuck;
            // A waiter that may hold leaves: another task of its session waits elsewhere.
            let holds = !matches!(queue.standing(place), Standing::Waits { .. });
            let stays = is_stuck || holds && self.waits_elsewhere(index, session);
            // A persistent contender stays.
            if !stays && session != 0 {
                continue;
            }
            before.push(contender, place, session);
            places.push(place);
        }
        (waits, progress)
    }

    /// Notes that a waiter is not stuck.
    fn goes_on(&mut self, index: usize, place: usize, session: i64) {
        self.waiters.remove(&(index, place));
        let queues = self.waits.entry(session).or_default();
        let left = queues.remove(&index).unwrap_or_default().saturating_sub(1);
        if left > 0 {
            queues.insert(index, left);
        }
    }

    /// True if a contender of this session is stuck in a queue other than this one.
    fn waits_elsewhere(&self, index: usize, session: i64) -> bool {
        let queues = self.waits.get(&session);
        queues.is_some_and(|queues| queues.keys().any(|other| *other != index))
    }
}
