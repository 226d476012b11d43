//! The plans of all workers, as the leader should write them: a pure function of the state.

use std::collections::{BTreeMap, BTreeSet};

use crate::pieces::Lines;
use crate::plan::{Moves, Plan, PlannedPartition, PlannedWorker, plan};

/// The worker should own the partition.
pub(crate) const OWN: &str = "own";
/// The worker should own the partition no longer, once the next owner waits behind it.
pub(crate) const GIVE: &str = "give";

/// What the leader knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) partitions: BTreeMap<String, PlannedPartition>,
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

type Planned<'a> = BTreeMap<&'a str, Vec<(&'a String, &'a String)>>;

impl View {
    /// The next plans. The same state gives the same plans.
    pub(crate) fn next(&self) -> Next {
        let present = self.present();
        let targets = self.targets(&present);
        let planned = self.planned();
        let mut next = Next {
            plans: self
                .workers
                .keys()
                .map(|it| (it.clone(), Lines::new()))
                .collect(),
            ..Next::default()
        };
        let under_way = targets
            .keys()
            .filter(|it| self.is_moving(it, &present, &planned));
        let mut room = self.max_moves.saturating_sub(under_way.count());
        for (partition, to) in &targets {
            let from = present.get(partition);
            if from == Some(to) {
                self.own(&mut next, &planned, partition, to);
                continue;
            }
            if self.owner(partition).is_some() {
                if room == 0 {
                    next.deferred += 1;
                    if let Some(from) = from {
                        self.own(&mut next, &planned, partition, from);
                    }
                    continue;
                }
                room -= 1;
            }
            self.own(&mut next, &planned, partition, to);
            next.moves.push(Move {
                partition: partition.clone(),
                from: from.cloned(),
                to: to.clone(),
                reason: self.reason(partition, from, to),
            });
        }
        next
    }

    fn owner(&self, partition: &str) -> Option<&String> {
        self.owned.get(partition).map(|(worker, _)| worker)
    }

    /// The worker that each partition is planned with, of those that are there or are awaited.
    fn present(&self) -> Plan {
        let mut present = Plan::new();
        for (worker, lines) in &self.plans {
            if !self.workers.contains_key(worker) && !self.awaited.contains(worker) {
                continue;
            }
            for (partition, word) in lines {
                // Two workers are planned if a leader has died between two writes.
                let is_owner = self.owner(partition) == Some(worker);
                if word == OWN && (is_owner || !present.contains_key(partition)) {
                    present.insert(partition.clone(), worker.clone());
                }
            }
        }
        let is_there = |worker: &String| self.workers.contains_key(worker);
        for (partition, (worker, _)) in &self.owned {
            // A worker that has vanished before the end of a move is not awaited: its partition has
            // an owner, which keeps it.
            let is_planned = present.get(partition).is_some_and(is_there);
            if is_there(worker) && !is_planned {
                present.insert(partition.clone(), worker.clone());
            }
        }
        present.retain(|partition, _| self.partitions.contains_key(partition));
        present
    }

    /// The worker that each partition should be with in the end.
    fn targets(&self, present: &Plan) -> Plan {
        let (mut targets, mut ranks) = (Plan::new(), BTreeMap::new());
        let mut planned = BTreeMap::new();
        for (partition, about) in &self.partitions {
            let worker = present.get(partition);
            if let Some(awaited) = worker.filter(|it| !self.workers.contains_key(*it)) {
                targets.insert(partition.clone(), awaited.clone());
                continue;
            }
            // `plan` moves the last of equal names. By rank that is a partition that its worker does
            // not own yet, or the one whose owner is the newest. So a worker that comes back gets
            // what it had.
            let owned = self.owned.get(partition);
            let owned = owned.filter(|(owner, _)| Some(owner) == worker);
            let token = owned.map_or(i64::MAX, |(_, token)| *token);
            let rank = format!("{token:020}/{partition}");
            let about = PlannedPartition {
                worker: self.pins.get(partition).cloned(),
                ..about.clone()
            };
            planned.insert(rank.clone(), about);
            if let Some(worker) = worker {
                ranks.insert(rank, worker.clone());
            }
        }
        let moves = match self.frozen {
            true => Moves::Frozen,
            false => Moves::Allowed,
        };
        for (rank, worker) in plan(&planned, &self.workers, &ranks, moves) {
            if let Some((_, partition)) = rank.split_once('/') {
                targets.insert(partition.to_owned(), worker);
            }
        }
        targets
    }

    /// The words of each partition in the present plans, with the workers.
    fn planned(&self) -> Planned<'_> {
        let mut planned = Planned::new();
        for (worker, lines) in &self.plans {
            for (partition, word) in lines {
                let words: &mut Vec<_> = planned.entry(partition).or_default();
                words.push((worker, word));
            }
        }
        planned
    }

    /// True if the partition is on its way to the worker that it is planned with.
    fn is_moving(&self, partition: &str, present: &Plan, planned: &Planned<'_>) -> bool {
        let Some(to) = present.get(partition) else {
            return false;
        };
        let owner = self.owner(partition);
        let mut words = planned.get(partition).into_iter().flatten();
        owner != Some(to) && (owner.is_some() || words.any(|(_, word)| *word == GIVE))
    }

    /// Plans a worker as the owner, and each other worker that may own the partition as its giver.
    fn own(&self, next: &mut Next, planned: &Planned<'_>, partition: &str, to: &str) {
        let owner = self.owner(partition);
        let lines = next.plans.entry(to.to_owned()).or_default();
        lines.insert(partition.to_owned(), OWN.to_owned());
        if owner.is_some_and(|owner| owner == to) {
            return;
        }
        next.unsettled += 1;
        let words = planned.get(partition).into_iter().flatten();
        let others = words.map(|(worker, _)| *worker).chain(owner);
        for other in others.filter(|it| *it != to && self.workers.contains_key(*it)) {
            let lines = next.plans.entry(other.clone()).or_default();
            lines.insert(partition.to_owned(), GIVE.to_owned());
        }
    }

    fn reason(&self, partition: &str, from: Option<&String>, to: &String) -> Reason {
        let worker = from.and_then(|from| self.workers.get(from));
        match worker {
            _ if self.pins.get(partition) == Some(to) => Reason::Pinned,
            None => Reason::Unowned,
            Some(worker) if worker.drained => Reason::Drained,
            Some(_) => Reason::Balance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a worker's plan, by partition.
    type Words<'a> = (&'a str, &'a [(&'a str, &'a str)]);

    /// Workers that are there, with their present plans, and who owns which partition.
    fn view(plans: &[Words<'_>], owned: &[(&str, &str, i64)]) -> View {
        let mut view = View {
            max_moves: 1,
            ..View::default()
        };
        for (worker, words) in plans {
            let lines = words.iter().map(|(partition, word)| {
                let partition = partition.to_string();
                view.partitions
                    .insert(partition.clone(), Default::default());
                (partition, word.to_string())
            });
            view.plans.insert(worker.to_string(), lines.collect());
            view.workers.insert(worker.to_string(), Default::default());
        }
        for (partition, worker, token) in owned {
            let owner = (worker.to_string(), *token);
            view.owned.insert(partition.to_string(), owner);
        }
        view
    }

    fn word<'a>(next: &'a Next, worker: &str, partition: &str) -> Option<&'a str> {
        let word = next.plans.get(worker)?.get(partition);
        word.map(String::as_str)
    }

    #[test]
    fn move_is_taken_back_if_the_next_owner_vanishes_and_is_awaited() {
        let mut view = view(
            &[("a", &[("p", GIVE)]), ("b", &[("p", OWN)])],
            &[("p", "a", 7)],
        );
        view.workers.remove("b");
        view.awaited.insert("b".to_owned());
        let next = view.next();
        assert_eq!(word(&next, "a", "p"), Some(OWN));
        assert_eq!(word(&next, "b", "p"), None);
    }

    #[test]
    fn awaited_worker_keeps_a_partition_that_nobody_owns() {
        let mut view = view(&[("a", &[]), ("b", &[("p", OWN)])], &[]);
        view.workers.remove("b");
        view.awaited.insert("b".to_owned());
        assert_eq!(word(&view.next(), "b", "p"), Some(OWN));
    }

    #[test]
    fn worker_that_comes_back_at_once_gets_the_partition_that_nobody_owns_yet() {
        let of_b = [("p", OWN), ("q", OWN)];
        let view = view(&[("a", &[]), ("b", &of_b)], &[("q", "b", 7)]);
        let next = view.next();
        assert_eq!(word(&next, "a", "p"), Some(OWN));
        assert_eq!(word(&next, "b", "q"), Some(OWN));
        assert_eq!(word(&next, "a", "q"), None);
    }

    /// As at a start, when the first worker is planned with all partitions before the others come.
    #[test]
    fn partitions_that_nobody_owns_yet_go_to_a_worker_that_comes_all_at_once() {
        let of_a = [("p", OWN), ("q", OWN), ("r", OWN), ("s", OWN)];
        let view = view(&[("a", &of_a), ("b", &[])], &[]);
        assert_eq!(view.max_moves, 1);
        let next = view.next();
        let of_b = next.plans["b"].values().filter(|word| *word == OWN);
        assert_eq!((of_b.count(), next.deferred), (2, 0));
        // The first worker may hold the lock by now.
        let given = next.plans["a"].values().filter(|word| *word == GIVE);
        assert_eq!(given.count(), 2);
    }

    #[test]
    fn move_that_has_not_ended_is_taken_back_before_another_one_begins() {
        let plans: [Words<'_>; 2] = [("a", &[("p", GIVE)]), ("b", &[("p", OWN), ("q", OWN)])];
        let mut view = view(&plans, &[("p", "a", 3), ("q", "b", 7)]);
        view.max_moves = 2;
        let next = view.next();
        assert_eq!(word(&next, "a", "p"), Some(OWN));
        assert_eq!(word(&next, "b", "q"), Some(OWN));
    }
}
