//! The plans of all workers, as the leader should write them: a pure function of the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::balance::{Candidate, Place, Target, target};
use crate::pieces::Lines;
use crate::plan::{Numbers, PlannedPartition, PlannedWorker};

/// The worker should own the partition.
pub(crate) const OWN: &str = "own";
/// The worker should own the partition no longer, once the next owner waits behind it.
pub(crate) const GIVE: &str = "give";

/// What the leader knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) partitions: Arc<BTreeMap<String, PlannedPartition>>,
    /// The members of the group.
    pub(crate) workers: BTreeMap<String, PlannedWorker>,
    /// The workers that have vanished and keep their partitions for a grace.
    pub(crate) awaited: BTreeSet<String>,
    /// The present plan of each worker.
    pub(crate) plans: BTreeMap<String, Lines>,
    /// Who owns each partition, and by which token.
    pub(crate) owned: BTreeMap<String, (String, i64)>,
    /// The worker that each pinned partition should be with.
    pub(crate) pins: BTreeMap<String, String>,
    pub(crate) frozen: bool,
    pub(crate) max_moves: usize,
}

/// What the leader should write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// The plan of each worker that has one.
    pub(crate) plans: BTreeMap<String, Lines>,
    /// The partitions that get another worker by this plan.
    pub(crate) moves: Vec<Move>,
    /// The moves that wait, because enough partitions move already.
    pub(crate) deferred: usize,
    /// The partitions that a worker should own and does not own yet.
    pub(crate) unsettled: usize,
}

/// A partition that gets another worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) partition: String,
    pub(crate) from: Option<String>,
    pub(crate) to: String,
    pub(crate) reason: Reason,
}

/// Why a partition gets another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// No worker of the plan is there.
    Unowned,
    /// An operator has pinned the partition.
    Pinned,
    /// An operator drains its worker.
    Drained,
    Balance,
}

impl Reason {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Reason::Unowned => "unowned",
            Reason::Pinned => "pinned",
            Reason::Drained => "drained",
            Reason::Balance => "balance",
        }
    }
}

/// The target that a leader works towards. It stays until the input changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Goal {
    input: Input,
    target: Target,
    /// When each partition moves: the place in the order of the steps.
    turns: Vec<u32>,
}

/// What the target follows from, beside where the partitions are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Input {
    partitions: Arc<BTreeMap<String, PlannedPartition>>,
    workers: BTreeMap<String, PlannedWorker>,
    awaited: BTreeSet<String>,
    pins: BTreeMap<String, String>,
    frozen: bool,
}

/// A partition, as a look at the state finds it. Workers are numbers.
#[derive(Debug, Default)]
struct Found {
    /// Who owns it, and by which token.
    owner: Option<(Place, i64)>,
    /// The workers whose plans name it, and whether as the owner.
    named: Vec<(Place, bool)>,
    /// The worker that it is planned with, of those that are there or are awaited.
    present: Option<Place>,
}

/// A look at the state. The members of the group have the first numbers, and then the awaited.
struct Look<'a> {
    view: &'a View,
    workers: Vec<&'a str>,
    members: Place,
    found: Vec<Found>,
}

impl View {
    /// The next plans. The same state and the same goal give the same plans.
    pub(crate) fn next(&self, goal: &mut Goal) -> Next {
        let look = Look::new(self);
        goal.follow(&look);
        look.next(goal)
    }
}

impl Goal {
    /// Computes the target anew if the input has changed.
    fn follow(&mut self, look: &Look<'_>) {
        let view = look.view;
        let is_same = self.input.frozen == view.frozen
            && self.input.workers == view.workers
            && self.input.awaited == view.awaited
            && self.input.pins == view.pins
            && self.input.partitions == view.partitions;
        if is_same && !self.turns.is_empty() {
            return;
        }
        self.input = Input {
            partitions: view.partitions.clone(),
            workers: view.workers.clone(),
            awaited: view.awaited.clone(),
            pins: view.pins.clone(),
            frozen: view.frozen,
        };
        self.target = look.target();
        self.turns = vec![u32::MAX; look.found.len()];
        for (turn, step) in (0..).zip(&self.target.steps) {
            self.turns[*step as usize] = turn;
        }
    }
}

impl<'a> Look<'a> {
    fn new(view: &'a View) -> Look<'a> {
        // The numbers of the target are those of its input.
        let mut workers: Vec<&str> = view.workers.keys().map(String::as_str).collect();
        let members = workers.len() as Place;
        workers.extend(view.awaited.iter().map(String::as_str));
        let mut numbers = Numbers::new(workers.iter().copied());
        let partitions = Numbers::new(view.partitions.keys().map(String::as_str));
        let mut found: Vec<Found> = Vec::new();
        found.resize_with(view.partitions.len(), Found::default);
        let mut number = |worker: &'a str| {
            let number = numbers.add(worker);
            if number as usize == workers.len() {
                workers.push(worker);
            }
            number
        };
        for (worker, lines) in &view.plans {
            let worker = number(worker);
            for (partition, word) in lines {
                if let Some(partition) = partitions.get(partition) {
                    found[partition as usize].named.push((worker, word == OWN));
                }
            }
        }
        for (partition, (worker, token)) in &view.owned {
            if let Some(partition) = partitions.get(partition) {
                found[partition as usize].owner = Some((number(worker), *token));
            }
        }
        let mut look = Look {
            view,
            workers,
            members,
            found,
        };
        for partition in 0..look.found.len() {
            look.found[partition].present = look.present(&look.found[partition]);
        }
        look
    }

    fn is_there(&self, worker: Place) -> bool {
        worker < self.members
    }

    /// The worker that the partition is planned with, of those that are there or are awaited.
    fn present(&self, found: &Found) -> Option<Place> {
        let counts = |worker: &Place| {
            self.is_there(*worker) || self.view.awaited.contains(self.workers[*worker as usize])
        };
        let owner = found.owner.map(|(worker, _)| worker);
        let owns = found.named.iter().filter(|(_, owns)| *owns);
        let mut planned = owns.map(|(worker, _)| *worker).filter(counts);
        // Two workers are planned if a leader has died between two writes.
        let first = planned.clone().next();
        let planned = planned.find(|it| Some(*it) == owner).or(first);
        // A worker that has vanished before the end of a move is not awaited: its partition has an
        // owner, which keeps it.
        let owner = owner.filter(|it| self.is_there(*it));
        planned
            .filter(|it| self.is_there(*it))
            .or(owner)
            .or(planned)
    }

    /// The worker that each partition should be with in the end. A partition of an awaited worker
    /// stays with it.
    fn target(&self) -> Target {
        let mut zones = Numbers::default();
        let workers = self.view.workers.values();
        let candidates: Vec<Candidate> = workers.map(|it| it.candidate(&mut zones)).collect();
        let members = Numbers::new(self.workers[..self.members as usize].iter().copied());
        let (mut items, mut numbers) = (Vec::new(), Vec::new());
        for (number, (name, about)) in self.view.partitions.iter().enumerate() {
            let Found { owner, present, .. } = &self.found[number];
            if present.is_some_and(|it| !self.is_there(it)) {
                continue;
            }
            // Of a worker's partitions, one that it does not own yet moves first, and then the one
            // that it has owned for the shortest time. So a worker that comes back gets what it had.
            let token = owner.filter(|(owner, _)| Some(*owner) == *present);
            let rank = token.map_or(u64::MAX, |(_, token)| token.unsigned_abs());
            let pin = self.view.pins.get(name).and_then(|it| members.get(it));
            items.push(about.item(&mut zones, pin, *present, rank));
            numbers.push(number as u32);
        }
        let target = target(&candidates, &items, self.view.frozen);
        let mut places: Vec<_> = self.found.iter().map(|found| found.present).collect();
        for (number, place) in numbers.iter().zip(target.places) {
            places[*number as usize] = place;
        }
        let steps = target.steps.iter().map(|step| numbers[*step as usize]);
        Target {
            places,
            steps: steps.collect(),
        }
    }

    /// True if the partition is on its way to the worker that it is planned with.
    fn is_moving(&self, found: &Found) -> bool {
        let owner = found.owner.map(|(worker, _)| worker);
        let is_given = found.named.iter().any(|(_, owns)| !owns);
        found.present.is_some() && owner != found.present && (owner.is_some() || is_given)
    }

    fn next(&self, goal: &Goal) -> Next {
        let mut next = Next::default();
        let names: Vec<&String> = self.view.partitions.keys().collect();
        for member in &self.workers[..self.members as usize] {
            next.plans.insert((*member).to_owned(), Lines::new());
        }
        let mut waiting: Vec<(u32, u32)> = Vec::new();
        let mut under_way = 0;
        for (number, found) in self.found.iter().enumerate() {
            let is_moving = self.is_moving(found);
            under_way += usize::from(is_moving);
            let target = goal.target.places[number];
            // A partition that is planned with a worker that has come back may have none.
            let Some(to) = target.or(found.present) else {
                continue;
            };
            // A move that is under way gets another end at once.
            if found.present != Some(to) && found.owner.is_some() && !is_moving {
                waiting.push((goal.turns[number], number as u32));
                continue;
            }
            if found.present != Some(to) {
                next.moves.push(self.moved(names[number], found, to));
            }
            self.own(&mut next, names[number], found, to);
        }
        waiting.sort_unstable();
        let room = self.view.max_moves.saturating_sub(under_way);
        next.deferred = waiting.len().saturating_sub(room);
        for (index, (_, number)) in waiting.into_iter().enumerate() {
            let (name, found) = (names[number as usize], &self.found[number as usize]);
            let to = goal.target.places[number as usize].filter(|_| index < room);
            if let Some(to) = to {
                next.moves.push(self.moved(name, found, to));
            }
            if let Some(to) = to.or(found.present) {
                self.own(&mut next, name, found, to);
            }
        }
        next
    }

    /// Plans a worker as the owner, and each other worker that may own the partition as its giver.
    fn own(&self, next: &mut Next, partition: &String, found: &Found, to: Place) {
        let mut line = |worker: Place, word: &str| {
            let worker = self.workers[worker as usize];
            let lines = match next.plans.get_mut(worker) {
                Some(lines) => lines,
                None => next.plans.entry(worker.to_owned()).or_default(),
            };
            lines.insert(partition.clone(), word.to_owned());
        };
        line(to, OWN);
        let owner = found.owner.map(|(worker, _)| worker);
        if owner == Some(to) {
            return;
        }
        let others = found.named.iter().map(|(worker, _)| *worker).chain(owner);
        for other in others.filter(|it| *it != to && self.is_there(*it)) {
            line(other, GIVE);
        }
        next.unsettled += 1;
    }

    fn moved(&self, partition: &str, found: &Found, to: Place) -> Move {
        let name = |worker: Place| self.workers[worker as usize].to_owned();
        let from = found.present.map(name);
        let to = name(to);
        Move {
            reason: self.reason(partition, from.as_ref(), &to),
            partition: partition.to_owned(),
            from,
            to,
        }
    }

    fn reason(&self, partition: &str, from: Option<&String>, to: &String) -> Reason {
        let worker = from.and_then(|from| self.view.workers.get(from));
        match worker {
            _ if self.view.pins.get(partition) == Some(to) => Reason::Pinned,
            None => Reason::Unowned,
            Some(worker) if worker.drained => Reason::Drained,
            Some(_) => Reason::Balance,
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/next_plans.rs"]
mod tests;

#[cfg(test)]
#[path = "../tests/unit/sequences.rs"]
mod sequences;
