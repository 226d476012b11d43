//! Circles of sessions that wait for each other.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
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
/// blocker itself.
struct Graph<'e> {
    edges: &'e [Edge],
    is_left: Vec<bool>,
    /// The edges by the sessions of their waiters, and by those of their blockers: their indices.
    from: HashMap<i64, Vec<usize>>,
    to: HashMap<i64, Vec<usize>>,
}

impl<'e> Graph<'e> {
    fn new(edges: &'e [Edge]) -> Graph<'e> {
        let (mut from, mut to): (HashMap<_, Vec<_>>, HashMap<_, Vec<_>>) = Default::default();
        for (index, edge) in edges.iter().enumerate() {
            from.entry(edge.from).or_default().push(index);
            to.entry(edge.to).or_default().push(index);
        }
        let mut graph = Graph {
            edges,
            is_left: vec![true; edges.len()],
            from,
            to,
        };
        graph.peel((0..edges.len()).collect());
        graph
    }

    /// A shortest ring through the youngest edge, then one through the youngest of the sessions that
    /// are left, and so on.
    fn rings(mut self) -> Vec<Vec<Edge>> {
        let mut youngest: Vec<usize> = (0..self.edges.len()).collect();
        youngest.sort_by_key(|index| Reverse(self.edges[*index].czxid));
        let mut rings = Vec::new();
        for index in youngest {
            if !self.is_left[index] {
                continue;
            }
            let Some(ring) = self.ring(index) else {
                self.remove(index);
                continue;
            };
            for edge in &ring {
                let own = [&self.from, &self.to].map(|edges| edges.get(&edge.from));
                let own: Vec<usize> = own.into_iter().flatten().flatten().copied().collect();
                own.into_iter().for_each(|index| self.remove(index));
            }
            rings.push(ring);
        }
        rings
    }

    /// A shortest ring through this edge, which begins with it.
    fn ring(&self, first: usize) -> Option<Vec<Edge>> {
        // Each edge that was reached, and the edge before it.
        let mut reached: HashMap<usize, usize> = HashMap::new();
        let mut next = VecDeque::from([first]);
        while !reached.contains_key(&first) {
            let index = next.pop_front()?;
            for after in self.after(index) {
                if let Entry::Vacant(entry) = reached.entry(after) {
                    entry.insert(index);
                    next.push_back(after);
                }
            }
        }
        let mut ring = vec![self.edges[first]];
        let mut index = reached[&first];
        while index != first {
            ring.insert(1, self.edges[index]);
            index = reached[&index];
        }
        Some(ring)
    }

    /// The edges that are left and to which this edge leads on.
    fn after(&self, index: usize) -> impl Iterator<Item = usize> {
        let edges = self.from.get(&self.edges[index].to).into_iter().flatten();
        let leads_on = move |after: &usize| self.is_left[*after] && self.leads_on(index, *after);
        edges.copied().filter(leads_on)
    }

    /// The edges that are left and lead on to this edge.
    fn before(&self, index: usize) -> impl Iterator<Item = usize> {
        let edges = self.to.get(&self.edges[index].from).into_iter().flatten();
        let leads_on = move |before: &usize| self.is_left[*before] && self.leads_on(*before, index);
        edges.copied().filter(leads_on)
    }

    fn leads_on(&self, index: usize, after: usize) -> bool {
        let (edge, after) = (&self.edges[index], &self.edges[after]);
        after.queue != edge.queue || after.waiter == edge.blocker
    }

    /// Removes an edge, and others that are in no ring without it.
    fn remove(&mut self, index: usize) {
        if std::mem::replace(&mut self.is_left[index], false) {
            let beside: Vec<usize> = self.after(index).chain(self.before(index)).collect();
            self.peel(beside);
        }
    }

    /// Removes the edges of these that lead on to none, or to which none leads on, and so on.
    fn peel(&mut self, mut edges: Vec<usize>) {
        while let Some(index) = edges.pop() {
            let is_inside =
                self.after(index).next().is_some() && self.before(index).next().is_some();
            if self.is_left[index] && !is_inside {
                self.is_left[index] = false;
                edges.extend(self.after(index).chain(self.before(index)));
            }
        }
    }
}
