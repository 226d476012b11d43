//! The znodes, and what each worker knows of them.

use super::setting::{AssignmentModel, MOST, Start};

/// What the plan of one worker says of one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Nothing: the worker drains and releases the partition at once.
    #[default]
    Nothing,
    /// The worker should own the partition.
    Own,
    /// The worker should pass the partition on to the next contender.
    Give,
}

/// The plan of one worker.
pub type Page = [Entry; MOST];

/// The plans of all workers, each a znode that may be missing.
pub type Plan = [Option<Page>; MOST];

/// A set of workers or of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Set(u8);

impl Set {
    /// True if the set has this element.
    pub fn has(self, element: usize) -> bool {
        self.0 & (1 << element) != 0
    }

    /// Puts the element in or takes it out.
    pub fn put(&mut self, element: usize, is_in: bool) {
        match is_in {
            true => self.0 |= 1 << element,
            false => self.0 &= !(1 << element),
        }
    }

    /// True if the set has no element.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The elements, in order.
    pub fn elements(self) -> impl Iterator<Item = usize> {
        (0..MOST).filter(move |element| self.has(*element))
    }
}

/// Workers in order, each once. Of the contenders of a lock the first may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue([Option<u8>; MOST]);

impl Queue {
    /// The first worker.
    pub fn first(self) -> Option<usize> {
        self.0[0].map(usize::from)
    }

    /// The last worker.
    pub fn last(self) -> Option<usize> {
        self.0.into_iter().flatten().last().map(usize::from)
    }

    /// True if the worker is among them.
    pub fn has(self, worker: usize) -> bool {
        self.0
            .into_iter()
            .flatten()
            .any(|it| usize::from(it) == worker)
    }

    /// The number of workers.
    pub fn len(self) -> usize {
        self.0.iter().flatten().count()
    }

    /// True if there is no worker.
    pub fn is_empty(self) -> bool {
        self.first().is_none()
    }

    pub(super) fn enter(&mut self, worker: usize) {
        let length = self.len();
        self.0[length] = u8::try_from(worker).ok();
    }

    pub(super) fn leave(&mut self, worker: usize) {
        let others = self.0.into_iter().flatten();
        let mut others = others.filter(|it| usize::from(*it) != worker);
        self.0 = std::array::from_fn(|_| others.next());
    }
}

/// The session of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Session {
    /// There is none.
    Absent,
    /// The worker has joined by it.
    Joined,
    /// The client has stopped to rely on it. The server has not expired it, so its ephemerals exist.
    Lapsed,
}

/// The work of a worker on one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// None. The worker may be warming.
    #[default]
    Idle,
    /// It waits for the lock.
    Queues,
    /// It has the lock, and works.
    Owns,
    /// It has the lock, and ends its work.
    Drains,
    /// It ends its work without the lock: a mistake.
    DrainsReleased,
}

/// A plan that a leader has computed, and has not written in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// The plan.
    pub plan: Plan,
    /// The workers whose plan is still to be written.
    pub pieces: Set,
    /// True if its leader has lost the leadership since.
    pub is_old: bool,
}

/// A process, and what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Worker {
    /// True if the process runs.
    pub runs: bool,
    /// True if the worker has left the group, and ends once it owns nothing.
    pub leaves: bool,
    /// Its session.
    pub session: Session,
    /// Its plan as it has last read it.
    pub seen: Option<Page>,
    /// Its work on each partition.
    pub phases: [Phase; MOST],
    /// The plan that it is about to write, as the leader.
    pub draft: Option<Draft>,
    /// The vanished workers whose grace is over, as the leader knows it.
    pub graces: Set,
    /// The vanished workers that it saw vanish. Used by a mistake only.
    pub timed: Set,
    /// The partitions whose plan has changed to `own`. Used by a mistake only.
    pub changed: Set,
}

impl Worker {
    /// True if another worker must not own the partition.
    pub fn owns(&self, partition: usize) -> bool {
        let phase = self.phases[partition];
        matches!(phase, Phase::Owns | Phase::Drains | Phase::DrainsReleased)
    }

    /// What its plan says, if it has read one. A worker that leaves gives all away.
    pub fn entry(&self, partition: usize) -> Option<Entry> {
        match self.leaves {
            true => Some(Entry::Give),
            false => self.seen.map(|page| page[partition]),
        }
    }
}

/// What the operators have ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Orders {
    /// True if no partition is to move.
    pub frozen: bool,
    /// The workers that are to own nothing.
    pub drained: Set,
    /// The worker that an operator has chosen for a partition.
    pub placed: [Option<u8>; MOST],
}

/// The znodes and the processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The processes.
    pub workers: [Worker; MOST],
    /// The leader among them.
    pub leader: Option<usize>,
    /// The plan of each.
    pub plan: Plan,
    /// The workers that list each partition as owned, by their tokens. The last is the newest.
    pub listed: [Queue; MOST],
    /// The lock of each partition.
    pub locks: [Queue; MOST],
    /// The orders.
    pub orders: Orders,
    /// How many events may still come.
    pub events: u8,
    /// The workers that an event has struck.
    pub struck: Set,
    /// The plans written since the last event.
    pub writes: u8,
    /// The locks granted since the last event.
    pub grants: u8,
    /// True if a plan was written after its leader had lost the leadership.
    pub has_old_plan: bool,
    /// True if a partition was released and no contender waited for it.
    pub has_gap: bool,
    /// True if the leader has something to look at. Used by a mistake only.
    pub is_stirred: bool,
}

impl State {
    pub(super) fn new(model: &AssignmentModel) -> State {
        let worker = |index: usize| Worker {
            runs: index < model.workers,
            leaves: false,
            session: Session::Absent,
            seen: None,
            phases: [Phase::Idle; MOST],
            draft: None,
            graces: Set::default(),
            timed: Set::default(),
            changed: Set::default(),
        };
        let mut state = State {
            workers: std::array::from_fn(worker),
            leader: None,
            plan: [None; MOST],
            listed: [Queue::default(); MOST],
            locks: [Queue::default(); MOST],
            orders: Orders::default(),
            events: model.events,
            struck: Set::default(),
            writes: 0,
            grants: 0,
            has_old_plan: false,
            has_gap: false,
            is_stirred: true,
        };
        if let Start::Settled(workers) = model.start {
            state.leader = Some(0);
            for index in 0..workers {
                state.settle(model, index);
            }
        }
        state
    }

    fn settle(&mut self, model: &AssignmentModel, index: usize) {
        let mut page = [Entry::Nothing; MOST];
        for (partition, entry) in page.iter_mut().enumerate().take(model.partitions) {
            if model.home(partition) == Some(index) {
                *entry = Entry::Own;
                self.workers[index].phases[partition] = Phase::Owns;
                self.locks[partition].enter(index);
                self.listed[partition].enter(index);
            }
        }
        self.plan[index] = Some(page);
        self.workers[index].seen = Some(page);
        self.workers[index].session = Session::Joined;
    }

    /// True if the group has a znode of this worker.
    pub fn is_member(&self, worker: usize) -> bool {
        let worker = &self.workers[worker];
        worker.session != Session::Absent && !worker.leaves
    }

    /// True if a worker lists other partitions, or other tokens, than it owns and has.
    pub fn lists_others(&self, worker: usize) -> bool {
        let differs = |(partition, listed): (usize, &Queue)| {
            let owns = self.workers[worker].owns(partition);
            owns != listed.has(worker) || (owns && listed.last() != Some(worker))
        };
        self.listed.iter().enumerate().any(differs)
    }

    pub(super) fn list(&mut self, worker: usize) {
        for (partition, listed) in self.listed.iter_mut().enumerate() {
            listed.leave(worker);
            if self.workers[worker].owns(partition) {
                listed.enter(worker);
            }
        }
    }

    /// What the plan of a worker says of a partition.
    pub fn entry(&self, worker: usize, partition: usize) -> Entry {
        self.plan[worker].map_or(Entry::Nothing, |page| page[partition])
    }
}
