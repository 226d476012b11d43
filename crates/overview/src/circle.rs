//! Circles of sessions that wait for each other.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use crate::contender::{ContenderState, ContenderStatus};
use crate::edges::Edge;
use crate::queue::QueueStatus;

/// Sessions that wait for each other: a *possible* deadlock.
///
/// Each session has a contender that waits for a contender of the next session, and the last one
/// waits for the first. Each of these waits existed at one moment between two looks.
///
/// It is a deadlock if no session of it releases before its own wait is over. That is so if each
/// process acquires one after the other. Tasks of one process may hold and wait independently of each
/// other: then a task may release what the circle waits for. Such a circle passes by itself, so look
/// at [`since`](Self::since).
///
/// A session that holds in a queue and waits in the same queue is no part of a circle by these two
/// alone: that is what tasks of one process do. So two processes that each hold a permit of a
/// semaphore and wait for a second one are not shown, nor two readers that both wait to write. The
/// queue has the mark [`SharedSession`](crate::Mark::SharedSession).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Circle {
    /// The waits. The blocker of each is of the session whose contender waits in the next one.
    ///
    /// The first wait is the youngest: it has closed the circle.
    pub waits: Vec<CircleWait>,
}

/// A wait of one session of a [`Circle`] for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircleWait {
    /// The path of the queue.
    pub path: String,
    /// The contender that waits.
    pub waiter: ContenderStatus,
    /// The contender that it waits for, of another session. It holds, or waits in the same queue.
    pub blocker: ContenderStatus,
}

impl Circle {
    /// Since when the circle exists: when its youngest waiter queued, by the clock of the server.
    pub fn since(&self) -> SystemTime {
        let created = self.waits.iter().map(|wait| wait.waiter.created);
        created.max().unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The wait whose blocker to remove, so that the circle is none any more.
    ///
    /// If possible, the blocker holds, and is of the session that has closed the circle. That
    /// session has held for the shortest time since. Its process loses the hold, and notices it
    /// within a sixth of its session timeout.
    pub fn way_out(&self) -> Option<&CircleWait> {
        // The last wait is for the session of the first one.
        let mut waits = self.waits.iter().rev();
        let holds = |wait: &&CircleWait| wait.blocker.state == ContenderState::Holds;
        waits.find(holds).or(self.waits.last())
    }

    fn of(edges: &[Edge], queues: &[Arc<QueueStatus>]) -> Option<Circle> {
        let wait = |edge: &Edge| {
            let queue = &queues[edge.queue];
            Some(CircleWait {
                path: queue.path().to_owned(),
                waiter: queue.contender(edge.waiter)?,
                blocker: queue.contender(edge.blocker)?,
            })
        };
        let waits = edges.iter().map(wait).collect::<Option<_>>()?;
        Some(Circle { waits })
    }
}

/// The circles of which each edge is among the `confirmed` ones, oldest first.
///
/// No session is in two of them.
pub(crate) fn circles(
    edges: &[Edge],
    queues: &[Arc<QueueStatus>],
    confirmed: impl Fn(&Edge) -> bool,
) -> Vec<Circle> {
    let edges: Vec<Edge> = edges.iter().copied().filter(confirmed).collect();
    let rings = rings(&edges);
    let circles = rings.iter().filter_map(|ring| Circle::of(ring, queues));
    let mut circles: Vec<Circle> = circles.collect();
    circles.sort_by_key(Circle::since);
    circles
}

/// The circles among these edges, as edges. No session is in two of them.
pub(crate) fn rings(edges: &[Edge]) -> Vec<Vec<Edge>> {
    Graph::new(edges).rings()
}

/// The edges that are left.
///
/// An edge leads on to those by which the session of its blocker waits: in another queue, or by the
/// blocker itself. To find one of them, and to remove one, takes the logarithm of their number.
struct Graph<'e> {
    edges: &'e [Edge],
    /// Their waiters and their blockers.
    from: Ends,
    to: Ends,
}

impl<'e> Graph<'e> {
    fn new(edges: &'e [Edge]) -> Graph<'e> {
        let mut graph = Graph {
            edges,
            from: Ends::default(),
            to: Ends::default(),
        };
        for index in 0..edges.len() {
            graph.from.0.insert(graph.waiter(index));
            graph.to.0.insert(graph.blocker(index));
        }
        graph.peel((0..edges.len()).collect());
        graph
    }

    fn waiter(&self, index: usize) -> End {
        let edge = &self.edges[index];
        (edge.from, edge.queue, edge.waiter, index)
    }

    fn blocker(&self, index: usize) -> End {
        let edge = &self.edges[index];
        (edge.to, edge.queue, edge.blocker, index)
    }

    fn is_left(&self, index: usize) -> bool {
        self.from.0.contains(&self.waiter(index))
    }

    /// A shortest ring through the youngest edge, then one through the youngest of the sessions that
    /// are left, and so on.
    fn rings(mut self) -> Vec<Vec<Edge>> {
        let mut youngest: Vec<usize> = (0..self.edges.len()).collect();
        youngest.sort_by_key(|index| Reverse(self.edges[*index].czxid));
        let mut rings = Vec::new();
        for index in youngest {
            if !self.is_left(index) {
                continue;
            }
            let Some(ring) = self.ring(index) else {
                self.remove(index);
                continue;
            };
            for edge in &ring {
                let own = [&self.from, &self.to].map(|ends| ends.within(of_session(edge.from)));
                let own: Vec<usize> = own.into_iter().flatten().collect();
                own.into_iter().for_each(|index| self.remove(index));
            }
            rings.push(ring);
        }
        rings
    }

    /// A shortest ring through this edge, which begins with it.
    fn ring(&mut self, first: usize) -> Option<Vec<Edge>> {
        // Each edge that was reached, and the edge before it. It is put aside: it is reached once.
        let mut reached: HashMap<usize, usize> = HashMap::new();
        let mut next = VecDeque::from([first]);
        while !reached.contains_key(&first) {
            let Some(index) = next.pop_front() else { break };
            let after: Vec<usize> = self.from.beside(self.blocker(index)).collect();
            for after in after {
                self.from.0.remove(&self.waiter(after));
                reached.insert(after, index);
                next.push_back(after);
            }
        }
        for index in reached.keys() {
            self.from.0.insert(self.waiter(*index));
        }
        let mut index = *reached.get(&first)?;
        let mut ring = vec![self.edges[first]];
        while index != first {
            ring.insert(1, self.edges[index]);
            index = reached[&index];
        }
        Some(ring)
    }

    /// Removes an edge, and others that are in no ring without it.
    fn remove(&mut self, index: usize) {
        if self.is_left(index) {
            let beside = self.take(index);
            self.peel(beside);
        }
    }

    /// Removes the edges of these that lead on to none, or to which none leads on, and so on.
    fn peel(&mut self, mut edges: Vec<usize>) {
        while let Some(index) = edges.pop() {
            let mut after = self.from.beside(self.blocker(index));
            let mut before = self.to.beside(self.waiter(index));
            let is_inside = after.next().is_some() && before.next().is_some();
            drop((after, before));
            if self.is_left(index) && !is_inside {
                edges.extend(self.take(index));
            }
        }
    }

    /// Removes an edge, and returns those that it may leave without one before or after them.
    fn take(&mut self, index: usize) -> Vec<usize> {
        let before = self.from.remove(self.waiter(index));
        let after = self.to.remove(self.blocker(index));
        let before = before.into_iter().flat_map(|ends| self.to.within(ends));
        let after = after.into_iter().flat_map(|ends| self.from.within(ends));
        before.chain(after).collect()
    }
}

/// The session of a contender, its queue and its place, and the index of an edge that it is an end of.
type End = (i64, usize, usize, usize);

fn of_session(session: i64) -> Range<End> {
    (session, 0, 0, 0)..(session, usize::MAX, 0, 0)
}

fn of_contender((session, queue, place, _): End) -> Range<End> {
    (session, queue, place, 0)..(session, queue, place + 1, 0)
}

/// The waiters of all edges that are left, or their blockers.
#[derive(Default)]
struct Ends(BTreeSet<End>);

impl Ends {
    /// The edges of these ends.
    fn within(&self, ends: Range<End>) -> impl Iterator<Item = usize> {
        self.0.range(ends).map(|(.., index)| *index)
    }

    /// The edges of a contender, and those of its session in other queues.
    fn beside(&self, contender: End) -> impl Iterator<Item = usize> {
        let (session, queue, ..) = contender;
        let all = of_session(session);
        let itself = of_contender(contender);
        let earlier = all.start..(session, queue, 0, 0);
        let later = (session, queue + 1, 0, 0)..all.end;
        let ends = [earlier, itself, later].into_iter();
        ends.flat_map(|ends| self.within(ends))
    }

    /// Removes an end, and returns those ends for which nothing may be [beside](Self::beside) now.
    ///
    /// All ends of a session are returned twice at most, and those of a contender once.
    fn remove(&mut self, end: End) -> Option<Range<End>> {
        self.0.remove(&end);
        let (session, queue, ..) = end;
        let left = || self.0.range(of_session(session)).map(|end| end.1);
        let (first, last) = (left().next(), left().next_back());
        if first != last {
            // Each end of the session has one in another queue.
            None
        } else if first != Some(queue) {
            Some(of_session(session))
        } else {
            let is_last = self.within(of_contender(end)).next().is_none();
            is_last.then_some(of_contender(end))
        }
    }
}
